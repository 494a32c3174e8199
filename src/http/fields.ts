// What may stand in a header field's name and value; knows no particular field.

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Nearly all values; found out with one look at each character. */
const PLAIN_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
const NOT_A_FIELD_VALUE = /[^\t\x20-\x7e\x80-\xff]|^[\t ]|[\t ]$/;

/** Whether the text is a token, as methods and field names are (RFC 9110 5.6.2). */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/**
 * Whether the text may be sent as a field value: no control character but tab, no character above U+00FF, no white
 * space at either end (RFC 9110 5.5). A value with CR or LF would end the field early and start another.
 */
export function isFieldValue(text: string): boolean {
  return PLAIN_VALUE.test(text) || !NOT_A_FIELD_VALUE.test(text);
}
