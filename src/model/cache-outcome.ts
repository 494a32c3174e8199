// What a cache did for a request and why, as words and as one small integer; knows no cache and no request.

/** X-Cache-Status in lower case. `bypass`: the cache was not asked; `expired`: a stale response was fetched again. */
export const cacheStatuses = ["hit", "stale", "revalidated", "miss", "expired", "bypass"] as const;
export type CacheStatus = (typeof cacheStatuses)[number];

/** Why the request went upstream: the parameter `fwd` of Cache-Status (RFC 9211 section 2.2). */
export const cacheForwards = [
  "bypass",
  "method",
  "uri-miss",
  "vary-miss",
  "request",
  "stale",
] as const;
export type CacheForward = (typeof cacheForwards)[number];

/** Why a response was not stored, as a sentence. */
const notStored = {
  authorization:
    "The request had Authorization, and cache_authorized is off or the response is not marked as shared",
  client_host: "The response redirects to the host of its request, which is not part of the key",
  head: "Responses to HEAD have no body to store",
  incomplete: "The response ended before it was complete",
  invalidated: "The resource was invalidated while the response was on its way",
  no_freshness: "The response has no explicit freshness, and no default applies",
  no_response: "The service sent no response",
  no_store: "Cache-Control of the response has no-store",
  no_validator: "The response is stale from the start, and has neither ETag nor Last-Modified",
  not_understood: "Cache-Control of the response has must-understand, and its status is unknown",
  other_response: "The service has another response than the stored one, which was removed",
  personal:
    "The request had cookies, and the response has no explicit freshness or is stale from the start",
  private: "Cache-Control of the response has private",
  request_no_store: "Cache-Control of the request has no-store",
  set_cookie: "The response sets a cookie",
  status: "Responses with this status are not stored",
  store_refused: "The store had no room for the response, or was busy for a second",
  streaming: "The response is a stream without an end",
  too_large: "The body is longer than max_body",
  vary_any: "Vary of the response is *",
} as const;
export type NotStored = keyof typeof notStored;

/** Why the cache is bypassed, or why it serves a stale response. */
const notFresh = {
  method: "The cache does not serve this method",
  request_body: "The request has a body",
  no_route: "No route matched",
  upgrade: "The request asks for another protocol",
  precondition: "The request has If-Match or If-Unmodified-Since",
  request_authorization: "The request has Authorization, and cache_authorized is off",
  override: "A header of the request may change its method or path",
  condition: "The request matches bypass_when",
  unknown_client: "The client is authenticated without an ID to be part of the key",
  range: "The request is for a part of a response that is not stored",
  stale_while_revalidate:
    "The gateway refreshes it in the background, as stale_while_revalidate allows",
  max_stale: "The client accepts stale responses",
  only_if_cached: "The client accepts no other one",
  stale_if_error: "The service fails, and stale_if_error allows a stale response",
} as const;

/** The order is that of the integers, which exist only within one process. */
const reasonTexts = { ...notFresh, ...notStored } as const;
export type CacheReason = keyof typeof reasonTexts;

/** All reasons. */
export const cacheReasons = Object.keys(reasonTexts) as readonly CacheReason[];

export interface CacheOutcome {
  readonly status: CacheStatus;
  /** Null: it did not go upstream. */
  readonly fwd: CacheForward | null;
  /** Whether this request's response, or an update of the stored one, was stored. */
  readonly stored: boolean;
  /** Request coalescing: true: it got the response to another request; false: it waited in vain; null: it did not wait. */
  readonly collapsed: boolean | null;
  /** Null: served fresh, revalidated or stored. */
  readonly reason: CacheReason | null;
}

/** From 1; see `decodeCacheOutcome`. */
export function encodeCacheOutcome(outcome: CacheOutcome): number {
  const { status, fwd, stored, collapsed, reason } = outcome;
  const waited = collapsed === null ? 0 : collapsed ? 2 : 1;
  return (
    (cacheStatuses.indexOf(status) + 1) |
    ((fwd === null ? 0 : cacheForwards.indexOf(fwd) + 1) << 3) |
    (waited << 6) |
    ((stored ? 1 : 0) << 8) |
    ((reason === null ? 0 : cacheReasons.indexOf(reason) + 1) << 9)
  );
}

/** Null for 0: no cache. */
export function decodeCacheOutcome(code: number): CacheOutcome | null {
  const status = cacheStatuses[(code & 7) - 1];
  if (status === undefined) return null;
  const waited = (code >> 6) & 3;
  return {
    status,
    fwd: cacheForwards[((code >> 3) & 7) - 1] ?? null,
    stored: (code & 256) !== 0,
    collapsed: waited === 0 ? null : waited === 2,
    reason: cacheReasons[(code >> 9) - 1] ?? null,
  };
}

const FORWARDED = {
  bypass: null,
  method: null,
  "uri-miss": "No response was stored for this URL and key.",
  "vary-miss": "Responses to this URL were stored, but for other values of the headers in Vary.",
  request: "The request asks for a newer response than the stored one.",
  stale: "The stored response was stale.",
} as const satisfies Record<CacheForward, string | null>;

/** Sentences for users. */
export function explainCacheOutcome({ status, fwd, ...outcome }: CacheOutcome): string {
  const { stored, collapsed, reason } = outcome;
  const because = reason === null ? "" : ` ${reasonTexts[reason]}.`;
  const parts: string[] = [];
  const found = fwd === null ? null : FORWARDED[fwd];
  if (found !== null) parts.push(found);
  if (collapsed === false) parts.push("It waited for another request to fetch it, in vain.");
  switch (status) {
    case "hit":
      parts.push(
        collapsed === true
          ? "Served the response to another request that was fetching it."
          : "Served a fresh stored response.",
      );
      return parts.join(" ");
    case "stale":
      parts.push(`Served the stale stored response.${because}`);
      return parts.join(" ");
    case "revalidated":
      parts.push("The service confirmed it, and it was served.");
      break;
    case "bypass":
      return `The request bypassed the cache.${because}`;
    case "miss":
    case "expired":
      // The client has got an error.
      if (fwd === null) return `No stored response could be served.${because}`;
      break;
    default:
      status satisfies never;
  }
  parts.push(stored ? "The response was stored." : `The response was not stored.${because}`);
  return parts.join(" ");
}
