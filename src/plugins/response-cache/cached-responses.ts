// Builds responses from stored ones: complete, partial, or 304; knows no store.
import { FieldList } from "../../pdk/response.ts";
import type { CacheOutcome } from "../../pdk/cache-outcome.ts";
import { addCacheStatus, HIT } from "./cache-status.ts";
import { isNotModified, rangeOf } from "./conditional.ts";
import type { DiskBody } from "./disk-body.ts";
import type { Stored, StoredHead } from "./store.ts";

export interface ShapedResponse {
  readonly status: number;
  /** Shared: copy before a change. */
  readonly fields: FieldList;
  readonly body: Uint8Array | DiskBody | null;
}

/** Age of the response in milliseconds. */
export const ageOf = ({ freshness, storedAt }: StoredHead, now: number): number =>
  freshness.ageMs + now - storedAt;

/** Milliseconds until the response is stale; 0 or negative: since. A soft purge makes it stale now. */
export function remainingOf(
  stored: StoredHead & Pick<Stored, "isSoftPurged">,
  now: number,
): number {
  const remaining = stored.freshness.lifetimeMs - ageOf(stored, now);
  return stored.isSoftPurged ? Math.min(0, remaining) : remaining;
}

/** How a stored response is served. */
interface Serving {
  readonly outcome: CacheOutcome;
  readonly now: number;
  /** Status of the service's response where the client gets another one, else null. */
  readonly fwdStatus?: number | null;
}

/** The headers of a stored response at this time. */
function fieldsOf(stored: Stored, { outcome, now, fwdStatus = null }: Serving): FieldList {
  const fields = new FieldList(stored.headers);
  fields.set("Age", String(Math.floor(ageOf(stored, now) / 1000)));
  addCacheStatus(fields, outcome, { ttlMs: remainingOf(stored, now), fwdStatus });
  return fields;
}

interface Prepared {
  readonly until: number;
  readonly fields: FieldList;
}

/** Builds responses from stored ones; caches the headers of hits, which change once a second. */
export class CachedResponses {
  readonly #prepared = new WeakMap<Stored, Prepared>();

  /** The headers of a hit. */
  #hit(stored: Stored, now: number): FieldList {
    const known = this.#prepared.get(stored);
    if (known !== undefined && now < known.until) return known.fields;
    const fields = fieldsOf(stored, { outcome: HIT, now });
    // Until Age or ttl changes.
    const inSecond = Math.min(
      1000 - (ageOf(stored, now) % 1000),
      Math.max(1, remainingOf(stored, now) % 1000),
    );
    this.#prepared.set(stored, { until: now + inSecond, fields });
    return fields;
  }

  /** `header`: reads the client's headers. Null: the stored response has been replaced or removed since it was found. */
  shape(
    stored: Stored,
    header: (name: string) => string | null,
    serving: Serving,
  ): ShapedResponse | null {
    const { status } = stored;
    const isHit = serving.outcome === HIT;
    const fields = isHit ? this.#hit(stored, serving.now) : fieldsOf(stored, serving);
    if (status === 200 && isNotModified(header, stored))
      return { status: 304, fields: withoutBody(fields), body: null };
    const body = stored.body();
    if (body === null) return null;
    if (status !== 200) return { status, fields, body };
    if (header("range") === null) return { status, fields, body };
    const range = rangeOf(header, body.byteLength, stored);
    if (range === null) return { status, fields, body };
    const part = fields.copy();
    if (range === "unsatisfiable") {
      for (const name of [...BODY_FIELDS, ...OF_THE_WHOLE]) part.delete(name);
      // A downstream cache must not store the 416 in place of the complete response.
      part.set("Cache-Control", "no-store");
      part.set("Content-Length", "0");
      part.set("Content-Range", `bytes */${body.byteLength}`);
      return { status: 416, fields: part, body: null };
    }
    const { first, last } = range;
    part.set("Content-Range", `bytes ${first}-${last}/${body.byteLength}`);
    part.set("Content-Length", String(last - first + 1));
    return { status: 206, fields: part, body: body.subarray(first, last + 1) };
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
function withoutBody(fields: FieldList): FieldList {
  const copy = fields.copy();
  for (const name of BODY_FIELDS) copy.delete(name);
  return copy;
}
