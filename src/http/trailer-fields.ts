// Which fields a trailer section may hold (RFC 9110 section 6.5.1), and how Trailer lists them; knows no message.
import { isToken } from "./fields.ts";
import { HOP_BY_HOP } from "./hop-by-hop.ts";

/** Fields of framing, routing, request modifiers, authentication and content, and Set-Cookie. */
const FORBIDDEN: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "content-length",
  "host",
  "cache-control",
  "expect",
  "max-forwards",
  "pragma",
  "range",
  "authorization",
  "www-authenticate",
  "cookie",
  "set-cookie",
  "age",
  "date",
  "expires",
  "location",
  "retry-after",
  "vary",
  "warning",
  "content-encoding",
  "content-type",
  "content-range",
]);

/** `name` in lower case. */
export const forbiddenInTrailers = (name: string): boolean =>
  FORBIDDEN.has(name) || name.startsWith("if-");

/** Those names of a value of Trailer (RFC 9110 section 6.6.2) that may pass, as sent; null: none. `passes`: of a name in lower case. */
export function listedTrailers(value: string, passes: (name: string) => boolean): string | null {
  const names = value
    .split(",")
    .map((name) => name.trim())
    .filter((name) => isToken(name) && !forbiddenInTrailers(name.toLowerCase()))
    .filter((name) => passes(name.toLowerCase()));
  return names.length === 0 ? null : names.join(", ");
}
