// What may stand in a header field's name and value; knows no particular field.

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Names of which each application makes the same variable as of themselves alone. */
const PLAIN_NAME = /^[0-9a-z-]*$/;
/** Nearly all values; found out with one look at each character. */
const PLAIN_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
const NOT_A_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]|^[\t ]|[\t ]$/;

/** Whether the text is a token, as methods and field names are (RFC 9110 5.6.2). */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/**
 * The lower-case name with every character but letters and digits as `-`. Applications make one variable of all names that are
 * equal in this form: CGI turns `-` into `_`, others do so with every such character, so `X_Real.IP` is `X-Real-IP` to them.
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
