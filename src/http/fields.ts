// The syntax of header field names and values; knows no particular field.

/** Header fields in order, names as received; a repeated name stands for a list. */
export type FieldPairs = readonly (readonly [name: string, value: string])[];

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Names that no application confuses with another name. */
const PLAIN_NAME = /^[0-9a-z-]*$/;
/** Nearly all values, checked with one test per character. */
const PLAIN_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
const NOT_A_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]|^[\t ]|[\t ]$/;

/** Whether the text is a token, as methods and field names are (RFC 9110 5.6.2). */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/**
 * The lower-case name with every character except letters and digits as `-`. Applications merge names that are equal in this
 * form: CGI turns `-` into `_`, others do so with every such character and read `X_Real.IP` as `X-Real-IP`.
 */
export function hyphenated(name: string): string {
  return PLAIN_NAME.test(name) ? name : name.replace(/[^0-9a-z]/g, "-");
}

/**
 * Whether the text may be sent as a field value: no control character but tab, no character above U+00FF, no white
 * space at either end (RFC 9110 5.5). A value with CR or LF would end the field early and start another.
 */
export function isFieldValue(text: string): boolean {
  return PLAIN_VALUE.test(text) || !NOT_A_FIELD_VALUE.test(text);
}
