// Prepares upstream requests whose response may be stored; knows no response and no store.
import type { RequestContext } from "../../pdk/context.ts";
import { comparableValue } from "./comparable.ts";
import type { Directives } from "./directives.ts";
import type { CacheKey } from "./key.ts";
import type { Stored } from "./store.ts";
import type { FillRequest } from "./storing.ts";

const VALIDATORS = ["if-none-match", "if-modified-since"] as const;

export function fillRequestOf(
  { upstream, headers, clientHost }: RequestContext,
  { cacheKey, said, epoch }: { cacheKey: CacheKey; said: Directives | null; epoch: number },
): FillRequest {
  const read = upstream.snapshot();
  return {
    cacheKey,
    request: {
      cacheControl: said ?? NOTHING_SAID,
      hasAuthorization: read("authorization") !== null,
      hasCookies: headers["cookie"] !== undefined,
      hasQuery: cacheKey.query !== "",
    },
    clientHost,
    fieldOf: (name) => comparableValue(name, read(name)),
    startedAt: performance.now(),
    epoch,
  };
}

/** Whether there is anything for `conditionsOf` to read: most requests have none. */
export const hasConditions = ({ headers }: RequestContext): boolean =>
  headers["if-none-match"] !== undefined ||
  headers["if-modified-since"] !== undefined ||
  headers["range"] !== undefined;

export const NO_CONDITIONS = (): null => null;

/**
 * Reads the client's conditions. Range applies to GET only (RFC 9110 section 14.2), and not where a plugin has removed it because
 * it changes complete bodies: ranges of the stored body would be those of the unchanged one. `sent`: reads upstream headers.
 */
export const conditionsOf =
  (context: RequestContext, sent: (name: string) => string | null) =>
  (name: string): string | null => {
    const value = context.header(name);
    if (value === null || name !== "range") return value;
    return context.method === "GET" && sent(name) !== null ? value : null;
  };

const NOTHING_SAID: Directives = new Map();

/** Prepares a request for the complete response, or a conditional one for the stored response; true: conditional. */
export function prepare(
  upstream: RequestContext["upstream"],
  by: {
    readonly stored: Stored | null;
    readonly cacheKey: CacheKey;
    readonly isUncacheable: boolean;
  },
): boolean {
  const { stored, cacheKey, isUncacheable } = by;
  // Parameters outside of the key must not change the response either.
  if (cacheKey.query !== upstream.query) upstream.setWholeQuery(cacheKey.query);
  if (stored === null) {
    // A client with a copy gets the complete response once, so that it can be stored.
    if (!isUncacheable)
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
