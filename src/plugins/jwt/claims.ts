// What the claims of a token say: finding them, comparing them, and writing them into header fields; knows no key.
import { isFieldValue } from "../../pdk/http.ts";

export type Claims = Readonly<Record<string, unknown>>;

/** A claim by its name, or by the names on the way to it with dots between; undefined when it is not there. */
export function claimOf(claims: Claims, name: string): unknown {
  // Names may hold dots themselves: many are addresses.
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Claims)[part];
  }
  return value;
}

/** Whether a claim is there and is, or is a list that holds, one of what is wanted; null: anything. */
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

/** A claim as the value of a header field; null for what is not there or no field can hold. */
export function toFieldValue(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const isPlain = (each: unknown) => typeof each !== "object";
  const text =
    Array.isArray(value) && value.every(isPlain)
      ? value.map(String).join(",")
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
  // Characters above U+007F have no meaning that everybody agrees on.
  return isFieldValue(text) && /^[\x20-\x7e]+$/.test(text) ? text : null;
}
