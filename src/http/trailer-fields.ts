// Which fields a trailer section may hold (RFC 9110 section 6.5.1); knows no message.
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
