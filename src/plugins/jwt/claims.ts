// Finds and compares claims of a token, and writes them into header fields; knows no key.
import { isFieldValue } from "../../pdk/http.ts";

export type Claims = Readonly<Record<string, unknown>>;

/** A claim by its name, or by the names of nested members separated by dots; undefined when absent. */
export function claimOf(claims: Claims, name: string): unknown {
  // Names may contain dots themselves: many are URLs.
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Claims)[part];
  }
  return value;
}

/** Whether a claim equals, or as a list contains, one of the required values; null: any value. */
export function fulfils(value: unknown, wanted: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (wanted === null) return true;
  const options: readonly unknown[] = Array.isArray(wanted) ? wanted : [wanted];
  const held: readonly unknown[] = Array.isArray(value) ? value : [value];
  return held.some((each) => options.includes(each));
}

/** The scopes of a token: `scope` (RFC 8693 section 4.2), or `scp` as some providers call it. */
export function scopesOf(claims: Claims): ReadonlySet<string> {
  const value = claims["scope"] ?? claims["scp"];
  const words = Array.isArray(value) ? value : typeof value === "string" ? value.split(" ") : [];
  return new Set(words.filter((word): word is string => typeof word === "string" && word !== ""));
}

/** A claim as the value of a header field; null when absent or not representable. */
export function toFieldValue(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const isPlain = (each: unknown) => typeof each !== "object";
  const text =
    Array.isArray(value) && value.every(isPlain)
      ? value.map(String).join(",")
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
  // Header fields have no agreed encoding for characters above U+007F.
  return isFieldValue(text) && /^[\x20-\x7e]+$/.test(text) ? text : null;
}
