// What a client is sent of a stored answer: the whole, a part, or that its copy is still good; knows no store.
import { isNotModified, rangeOf } from "./conditional.ts";
import type { Stored } from "./store.ts";

/** How a stored answer came to be given. */
export type Manner = "hit" | "collapsed" | "stale" | "failed" | "revalidated";

export interface Shaped {
  readonly status: number;
  /** To be copied before it is changed. */
  readonly headers: Headers;
  readonly body: Uint8Array | null;
}

/** Milliseconds since the origin made the answer. */
export const ageOf = ({ freshness, storedAt }: Stored, now: number): number =>
  freshness.ageMs + now - storedAt;

/** Milliseconds until the answer is stale; negative: since. */
export const remainingOf = (stored: Stored, now: number): number =>
  stored.freshness.lifetimeMs - ageOf(stored, now);

const WORDS = {
  hit: "HIT",
  collapsed: "HIT",
  stale: "STALE",
  failed: "STALE",
  revalidated: "REVALIDATED",
} as const satisfies Record<Manner, string>;

/** The member of Cache-Status (RFC 9211). */
function cacheStatus(manner: Manner, ttl: number): string {
  switch (manner) {
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
      return manner satisfies never;
  }
}

/** Adds what this cache has done to what caches before it say. */
export function tellStatus(headers: Headers, member: string, word: string): void {
  headers.append("Cache-Status", member);
  headers.set("X-Cache-Status", word);
}

/** The fields of a stored answer as they go out now. */
function fieldsOf(stored: Stored, manner: Manner, now: number): Headers {
  const headers = new Headers(stored.headers);
  headers.set("Age", String(Math.floor(ageOf(stored, now) / 1000)));
  const ttl = Math.floor(remainingOf(stored, now) / 1000);
  tellStatus(headers, cacheStatus(manner, ttl), WORDS[manner]);
  return headers;
}

interface Prepared {
  readonly until: number;
  readonly headers: Headers;
}

/** Makes answers from stored ones; remembers the fields of hits, which change once a second. */
export class Answers {
  readonly #prepared = new WeakMap<Stored, Prepared>();

  /** The fields of a hit. */
  #hit(stored: Stored, now: number): Headers {
    const known = this.#prepared.get(stored);
    if (known !== undefined && now < known.until) return known.headers;
    const headers = fieldsOf(stored, "hit", now);
    // Until the next of the two numbers changes.
    const inSecond = Math.min(
      1000 - (ageOf(stored, now) % 1000),
      Math.max(1, remainingOf(stored, now) % 1000),
    );
    this.#prepared.set(stored, { until: now + inSecond, headers });
    return headers;
  }

  /** `header`: of the client. */
  shape(
    stored: Stored,
    header: (name: string) => string | null,
    { manner, now }: { readonly manner: Manner; readonly now: number },
  ): Shaped {
    const { status, body } = stored;
    const headers = manner === "hit" ? this.#hit(stored, now) : fieldsOf(stored, manner, now);
    if (status !== 200) return { status, headers, body };
    if (isNotModified(header, stored))
      return { status: 304, headers: withoutBody(headers), body: null };
    if (header("range") === null) return { status, headers, body };
    const range = rangeOf(header, body.byteLength, stored);
    if (range === null) return { status, headers, body };
    const part = new Headers(headers);
    if (range === "unsatisfiable") {
      for (const name of [...BODY_FIELDS, ...OF_THE_WHOLE]) part.delete(name);
      // What may be kept is the whole: a cache behind this one that does not tell the two apart would keep the refusal.
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

/** RFC 9110 section 15.4.5: what describes the body that is not sent stays behind. */
function withoutBody(headers: Headers): Headers {
  const copy = new Headers(headers);
  for (const name of BODY_FIELDS) copy.delete(name);
  return copy;
}
