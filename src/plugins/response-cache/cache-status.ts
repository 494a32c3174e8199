// Reports what the cache did: in Cache-Status (RFC 9211), in X-Cache-Status and to the gateway; knows no store and no rule.
import type { CacheForward, CacheOutcome } from "../../pdk/cache-outcome.ts";

/** What only the response shows. */
export interface CacheFacts {
  /** Remaining freshness in milliseconds, negative when stale; null: not stored. */
  readonly ttlMs: number | null;
  /** Status of the service's response where the client gets another one, else null. */
  readonly fwdStatus: number | null;
  /** Members of caches before this one. Default: those in the headers. */
  readonly before?: string | null;
}

const NO_FACTS: CacheFacts = { ttlMs: null, fwdStatus: null };

/** A fresh stored response. */
export const HIT: CacheOutcome = {
  status: "hit",
  fwd: null,
  stored: false,
  collapsed: null,
  reason: null,
};

/** Of a request that goes upstream, as long as there is no response. */
export const forwarded = (fwd: CacheForward, collapsed: boolean | null): CacheOutcome => ({
  status: fwd === "stale" ? "expired" : "miss",
  fwd,
  stored: false,
  collapsed,
  reason: "no_response",
});

/**
 * The member of this cache. All values are tokens, integers and booleans of RFC 9651, which need no escapes: the serializer of
 * structured-headers takes 0.6 us for it, this 0.02 us. `key` is not sent, because it names consumers.
 */
export function cacheStatus(
  { fwd, stored, collapsed, reason }: CacheOutcome,
  { ttlMs, fwdStatus }: CacheFacts,
): string {
  let member = fwd === null ? "sluice; hit" : `sluice; fwd=${fwd}`;
  if (fwdStatus !== null) member += `; fwd-status=${fwdStatus}`;
  if (stored) member += "; stored";
  if (collapsed !== null) member += collapsed ? "; collapsed" : "; collapsed=?0";
  if (ttlMs !== null) member += `; ttl=${Math.floor(ttlMs / 1000)}`;
  return reason === null || reason === fwd ? member : `${member}; detail=${reason}`;
}

/** Adds this cache's member after those of caches before it. */
export function addCacheStatus(
  headers: Pick<Headers, "get" | "set">,
  outcome: CacheOutcome,
  facts: CacheFacts = NO_FACTS,
): void {
  const { before = headers.get("cache-status") } = facts;
  const member = cacheStatus(outcome, facts);
  headers.set("Cache-Status", before === null ? member : `${before}, ${member}`);
  headers.set("X-Cache-Status", outcome.status.toUpperCase());
}
