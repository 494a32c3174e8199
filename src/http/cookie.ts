// Reading a Cookie field; knows nothing of sessions or of writing cookies.
import { isBlank, valueBetween } from "./whitespace.ts";

const QUOTE = 34;

/**
 * The value of the first cookie with that name, null when there is none (RFC 6265 4.2.1 and 5.4, read leniently: white
 * space around names is ignored, a pair without `=` is skipped, quotes around a value are dropped).
 * It builds no map, because callers usually need one name of a request.
 */
export function cookieValue(header: string | null, name: string): string | null {
  if (header === null) return null;
  let start = 0;
  while (start < header.length) {
    let end = header.indexOf(";", start);
    if (end < 0) end = header.length;
    start = skipBlank(header, start, end);
    const equals = start + name.length;
    if (header.startsWith(name, start)) {
      const sign = skipBlank(header, equals, end);
      if (sign < end && header.charCodeAt(sign) === 61) return unquoted(header, sign + 1, end);
    }
    start = end + 1;
  }
  return null;
}

/** All values of cookies with that name, in order. */
export function cookieValues(header: string | null, name: string): string[] {
  const values: string[] = [];
  for (const pair of (header ?? "").split(";")) {
    const value = cookieValue(pair, name);
    if (value !== null) values.push(value);
  }
  return values;
}

export interface CookiePair {
  /** As in the field, without surrounding white space. */
  readonly text: string;
  /** Empty where there is no `=`. */
  readonly name: string;
  readonly value: string;
}

/** All pairs of a Cookie field in order, read as `cookieValue` does, without empty ones. */
export function cookiePairs(header: string): CookiePair[] {
  const pairs: CookiePair[] = [];
  for (const part of header.split(";")) {
    const text = valueBetween(part, 0, part.length);
    if (text === "") continue;
    const sign = text.indexOf("=");
    const name = sign < 0 ? "" : valueBetween(text, 0, sign);
    const value = sign < 0 ? text : unquoted(text, sign + 1, text.length);
    pairs.push({ text, name, value });
  }
  return pairs;
}

function skipBlank(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isBlank(text.charCodeAt(at))) at++;
  return at;
}

function unquoted(text: string, from: number, to: number): string {
  const value = valueBetween(text, from, to);
  const last = value.length - 1;
  const isQuoted = last > 0 && value.charCodeAt(0) === QUOTE && value.charCodeAt(last) === QUOTE;
  return isQuoted ? value.slice(1, last) : value;
}
