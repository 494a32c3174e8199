// Hop-by-hop fields, which the gateway never forwards; knows nothing of the fields that it adds.

/** Lower-case names of the fields that every intermediary removes (RFC 9110 7.6.1), with the historical Keep-Alive and Proxy-Connection. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Those of one connection, which HTTP/2 does not have (RFC 9113 section 8.2.2). */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

const NONE: readonly string[] = [];

/**
 * Lower-case names listed in a `Connection` value: fields to remove besides `HOP_BY_HOP` (RFC 9110 7.6.1).
 * Null, and the usual `close` and `keep-alive`, which name no other field, give the empty list.
 */
export function connectionOptions(value: string | null): readonly string[] {
  if (value === null || value === "keep-alive" || value === "close") return NONE;
  const names: string[] = [];
  for (const item of value.toLowerCase().split(",")) {
    const name = item.trim();
    if (name !== "" && name !== "keep-alive" && name !== "close") names.push(name);
  }
  return names;
}
