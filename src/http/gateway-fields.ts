// Header fields of upstream requests that only the gateway itself may write; knows nothing of their values.
import { HOP_BY_HOP } from "./hop-by-hop.ts";

/** Lower-case names: framing, and facts about the client and the gateway. */
export const GATEWAY_FIELDS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  "via",
  "cdn-loop",
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-real-ip",
]);
