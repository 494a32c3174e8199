// Fields of a request upstream that only the gateway itself may write; knows nothing of how it writes them.
import { HOP_BY_HOP } from "./hop-by-hop.ts";

/** Lower-case names: framing, and what the gateway says about the client and itself. */
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
