// How a request goes upstream whose answer may be stored; knows no answer and no store.
import type { RequestContext } from "../../pdk/context.ts";
import type { Directives } from "./directives.ts";
import type { CacheKey } from "./key.ts";
import type { Stored } from "./store.ts";
import { comparableValue, type Occasion } from "./storing.ts";

const VALIDATORS = ["if-none-match", "if-modified-since"] as const;

export function occasionOf(
  { upstream, headers }: RequestContext,
  place: CacheKey,
  said: Directives | null,
): Occasion {
  const read = upstream.snapshot();
  return {
    place,
    request: {
      cacheControl: said ?? NOTHING_SAID,
      hasAuthorization: read("authorization") !== null,
      hasCookies: headers["cookie"] !== undefined,
    },
    fieldOf: (name) => comparableValue(name, read(name)),
    startedAt: performance.now(),
  };
}

/**
 * What an answer is shaped by. Range is about GET only (RFC 9110 section 14.2), and nothing comes of it where a plugin has taken
 * it away because it changes whole bodies: the parts of a stored one would be what it was before. `sent`: reads a field
 * as it goes upstream.
 */
export const conditionsOf =
  (context: RequestContext, sent: (name: string) => string | null) =>
  (name: string): string | null => {
    const value = context.header(name);
    if (value === null || name !== "range") return value;
    return context.method === "GET" && sent(name) !== null ? value : null;
  };

const NOTHING_SAID: Directives = new Map();

/** Asks for the whole answer, or whether the stored one still holds; tells which of the two. */
export function prepare(
  upstream: RequestContext["upstream"],
  scene: { readonly stored: Stored | null; readonly place: CacheKey; readonly isUseless: boolean },
): boolean {
  const { stored, place, isUseless } = scene;
  // What does not count must not be able to change the answer either.
  if (place.query !== upstream.query) upstream.setWholeQuery(place.query);
  if (stored === null) {
    // A client that has a copy gets the whole once, so that there is something to store.
    if (!isUseless)
      for (const name of VALIDATORS)
        if (upstream.header(name) !== null) upstream.removeHeader(name);
    return false;
  }
  for (const name of [...VALIDATORS, "range", "if-range"])
    if (upstream.header(name) !== null) upstream.removeHeader(name);
  const { etag, lastModified } = stored;
  if (etag !== null) upstream.setHeader("If-None-Match", etag);
  if (lastModified !== null) upstream.setHeader("If-Modified-Since", lastModified);
  return etag !== null || lastModified !== null;
}
