// Builds responses from stored ones: complete, partial, or 304; knows no store.
import { isNotModified, rangeOf } from "./conditional.ts";
import type { Stored } from "./store.ts";

/** How a stored response was selected. */
export type HitKind = "hit" | "collapsed" | "stale" | "failed" | "revalidated";

export interface ShapedResponse {
  readonly status: number;
  /** Shared: copy before a change. */
  readonly headers: Headers;
  readonly body: Uint8Array | null;
}

/** Age of the response in milliseconds. */
export const ageOf = ({ freshness, storedAt }: Stored, now: number): number =>
  freshness.ageMs + now - storedAt;

/** Milliseconds until the response is stale; negative: since. */
export const remainingOf = (stored: Stored, now: number): number =>
  stored.freshness.lifetimeMs - ageOf(stored, now);

const WORDS = {
  hit: "HIT",
  collapsed: "HIT",
  stale: "STALE",
  failed: "STALE",
  revalidated: "REVALIDATED",
} as const satisfies Record<HitKind, string>;

/** The member of Cache-Status (RFC 9211). */
function cacheStatus(hitKind: HitKind, ttl: number): string {
  switch (hitKind) {
    case "hit":
    case "stale":
      return `sluice; hit; ttl=${ttl}`;
    case "collapsed":
      return `sluice; fwd=miss; collapsed; ttl=${ttl}`;
    case "failed":
      return `sluice; fwd=stale; ttl=${ttl}; detail=stale-if-error`;
    case "revalidated":
      return `sluice; fwd=stale; fwd-status=304; stored; ttl=${ttl}`;
    default:
      return hitKind satisfies never;
  }
}

/** Appends this cache's member to those of caches before it. */
export function addCacheStatus(headers: Headers, member: string, word: string): void {
  headers.append("Cache-Status", member);
  headers.set("X-Cache-Status", word);
}

/** The headers of a stored response at this time. */
function fieldsOf(stored: Stored, hitKind: HitKind, now: number): Headers {
  const headers = new Headers(stored.headers);
  headers.set("Age", String(Math.floor(ageOf(stored, now) / 1000)));
  const ttl = Math.floor(remainingOf(stored, now) / 1000);
  addCacheStatus(headers, cacheStatus(hitKind, ttl), WORDS[hitKind]);
  return headers;
}

interface Prepared {
  readonly until: number;
  readonly headers: Headers;
}

/** Builds responses from stored ones; caches the headers of hits, which change once a second. */
export class CachedResponses {
  readonly #prepared = new WeakMap<Stored, Prepared>();

  /** The headers of a hit. */
  #hit(stored: Stored, now: number): Headers {
    const known = this.#prepared.get(stored);
    if (known !== undefined && now < known.until) return known.headers;
    const headers = fieldsOf(stored, "hit", now);
    // Until Age or ttl changes.
    const inSecond = Math.min(
      1000 - (ageOf(stored, now) % 1000),
      Math.max(1, remainingOf(stored, now) % 1000),
    );
    this.#prepared.set(stored, { until: now + inSecond, headers });
    return headers;
  }

  /** `header`: reads the client's headers. */
  shape(
    stored: Stored,
    header: (name: string) => string | null,
    { hitKind, now }: { readonly hitKind: HitKind; readonly now: number },
  ): ShapedResponse {
    const { status, body } = stored;
    const headers = hitKind === "hit" ? this.#hit(stored, now) : fieldsOf(stored, hitKind, now);
    if (status !== 200) return { status, headers, body };
    if (isNotModified(header, stored))
      return { status: 304, headers: withoutBody(headers), body: null };
    if (header("range") === null) return { status, headers, body };
    const range = rangeOf(header, body.byteLength, stored);
    if (range === null) return { status, headers, body };
    const part = new Headers(headers);
    if (range === "unsatisfiable") {
      for (const name of [...BODY_FIELDS, ...OF_THE_WHOLE]) part.delete(name);
      // A downstream cache must not store the 416 in place of the complete response.
      part.set("Cache-Control", "no-store");
      part.set("Content-Length", "0");
      part.set("Content-Range", `bytes */${body.byteLength}`);
      return { status: 416, headers: part, body: null };
    }
    const { first, last } = range;
    part.set("Content-Range", `bytes ${first}-${last}/${body.byteLength}`);
    part.set("Content-Length", String(last - first + 1));
    return { status: 206, headers: part, body: body.subarray(first, last + 1) };
  }
}

const BODY_FIELDS = [
  "content-length",
  "content-type",
  "content-encoding",
  "content-language",
] as const;

const OF_THE_WHOLE = ["expires", "etag", "last-modified"] as const;

/** RFC 9110 section 15.4.5: without headers that describe the body. */
function withoutBody(headers: Headers): Headers {
  const copy = new Headers(headers);
  for (const name of BODY_FIELDS) copy.delete(name);
  return copy;
}
