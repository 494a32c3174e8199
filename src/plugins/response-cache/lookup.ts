// Decides about a request: serve from the store, wait for another fetch, or go upstream; knows no upstream response.
import { type Outcome, reject } from "../../pdk/response.ts";
import type { RequestContext } from "../../pdk/context.ts";
import { ageOf, type HitKind, remainingOf } from "./cached-responses.ts";
import type { CacheDecision } from "./cache-decision.ts";
import { type Directives, parseDirectives, seconds } from "./directives.ts";
import { type CacheKey, isOverridden } from "./key.ts";
import type { Instance } from "./instance.ts";
import { refresh } from "./refresh.ts";
import type { Stored } from "./store.ts";
import { comparableValue } from "./storing.ts";
import { conditionsOf, fillRequestOf, prepare } from "./upstream-request.ts";

/** How often a request waits for fetches of others. */
const MAX_WAITS = 3;

const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** The handler of the `request` phase, which runs after all plugins that may reject the request. */
export function lookUp(context: RequestContext, instance: Instance): Outcome | Promise<Outcome> {
  const { method } = context;
  const { upstream } = context;
  if (!SAFE.has(method) || !SAFE.has(upstream.method)) {
    const { host } = context;
    const resource = instance.keys.resourceOf({ host, path: upstream.path, query: upstream.query });
    return proceed(context, instance, { kind: "unsafe", resource });
  }
  if (!instance.methods.has(method) || upstream.method !== method)
    return proceed(context, instance, { kind: "bypass", why: "method" });
  if (isBypassed(context, instance))
    return proceed(context, instance, { kind: "bypass", why: "bypass" });
  const cacheKey = instance.keys.keyOf(context);
  if (cacheKey === null) return proceed(context, instance, { kind: "bypass", why: "bypass" });
  return decide(context, instance, { cacheKey, waits: 0 });
}

function isBypassed(context: RequestContext, { own, bypasses }: Instance): boolean {
  const { headers, upstream } = context;
  return (
    context.hasBody ||
    context.route === null ||
    headers["upgrade"] !== undefined ||
    headers["if-match"] !== undefined ||
    headers["if-unmodified-since"] !== undefined ||
    (!own.cache_authorized && upstream.header("authorization") !== null) ||
    isOverridden(context) ||
    bypasses?.(context) === true
  );
}

interface Lookup {
  readonly cacheKey: CacheKey;
  readonly waits: number;
}

function decide(
  context: RequestContext,
  instance: Instance,
  attempt: Lookup,
): Outcome | Promise<Outcome> {
  const { store, own } = instance;
  const { key } = attempt.cacheKey;
  const { upstream } = context;
  const fieldOf = (name: string) => comparableValue(name, upstream.header(name));
  const stored = store.find(key, fieldOf);
  const said = directivesOf(context, own.ignore_client_no_cache);
  if (stored !== null) {
    const now = performance.now();
    const hitKind = hitKindOf(stored, instance, { said, waits: attempt.waits, now });
    if (hitKind !== null) {
      if (hitKind === "stale") refresh(context, instance, { stored, cacheKey: attempt.cacheKey });
      return serveHit(context, instance, { stored, hitKind, now });
    }
  }
  if (said?.has("only-if-cached") === true)
    return reject(504, "cache.only", { detail: "there is no stored response" });
  return fetchUpstream(context, instance, { ...attempt, stored, said });
}

/** Directives that `ignore_client_no_cache` does not affect. */
const ALWAYS = /no-store|only-if-cached/i;

/** Cache-Control, or Pragma without one (RFC 9111 section 5.4); null: no effect. */
function directivesOf({ headers }: RequestContext, isIgnored: boolean): Directives | null {
  const { "cache-control": control, pragma } = headers;
  if (control !== undefined)
    return isIgnored && !ALWAYS.test(control) ? null : parseDirectives(control);
  if (isIgnored || pragma === undefined || !/no-cache/i.test(pragma)) return null;
  return new Map([["no-cache", ""]]);
}

/** How the stored response may be served without a fetch; null: it may not. */
function hitKindOf(
  stored: Stored,
  { own, failing }: Instance,
  { said, waits, now }: { readonly said: Directives | null; readonly waits: number; now: number },
): HitKind | null {
  const remaining = remainingOf(stored, now);
  const { staleWhileRevalidateMs, staleIfErrorMs } = stored.freshness;
  if (said !== null && !own.ignore_client_no_cache && waits === 0) {
    const maxAge = seconds(said, "max-age");
    const minFresh = seconds(said, "min-fresh") ?? 0;
    if (said.has("no-cache")) return null;
    if (maxAge !== null && ageOf(stored, now) > maxAge * 1000) return null;
    if (remaining < minFresh * 1000) return null;
  }
  if (remaining > 0) return waits > 0 ? "collapsed" : "hit";
  if (-remaining < staleWhileRevalidateMs) return "stale";
  // The service has just failed: spare it another request.
  if (-remaining < staleIfErrorMs && failing.get(stored.key) !== undefined) return "failed";
  return null;
}

function serveHit(
  context: RequestContext,
  { cachedResponses }: Instance,
  { stored, hitKind, now }: { readonly stored: Stored; readonly hitKind: HitKind; now: number },
): Outcome {
  const header = conditionsOf(context, (name) => context.upstream.header(name));
  const { status, headers, body } = cachedResponses.shape(stored, header, { hitKind, now });
  const reason = hitKind === "hit" ? "cache.hit" : `cache.${hitKind}`;
  return { kind: "reply", status, reason, headers, body, hasSharedHeaders: true };
}

interface Fetch extends Lookup {
  readonly stored: Stored | null;
  readonly said: Directives | null;
}

function fetchUpstream(
  context: RequestContext,
  instance: Instance,
  { cacheKey, waits, stored, said }: Fetch,
): Outcome | Promise<Outcome> {
  const { fills, own, uncacheable } = instance;
  const isWhole =
    context.method === "GET" && (stored !== null || context.upstream.header("range") === null);
  if (!isWhole) {
    if (context.method === "HEAD") {
      const fillRequest = fillRequestOf(context, cacheKey, said);
      return proceed(context, instance, { kind: "head", fillRequest, stale: stored });
    }
    return proceed(context, instance, { kind: "bypass", why: "partial" });
  }
  const kind = cacheKey.key + kindOf(context, own);
  const isUncacheable = uncacheable.get(kind) !== undefined;
  const flight = {
    key: flightKey(context, instance, { key: cacheKey.key, kind }),
    resource: cacheKey.resource,
  };
  const mayWait = own.coalesce && !isUncacheable && said?.has("no-store") !== true;
  const leader = mayWait && waits < MAX_WAITS ? fills.leaderOf(flight.key) : null;
  if (leader !== null)
    return fills
      .wait(leader, context.signal)
      .then((verdict) =>
        verdict === "look"
          ? decide(context, instance, { cacheKey, waits: waits + 1 })
          : decide(context, instance, { cacheKey, waits: MAX_WAITS }),
      );
  const fillRequest = fillRequestOf(context, cacheKey, said);
  const isForced = stored !== null && remainingOf(stored, fillRequest.startedAt) > 0;
  const isConditional = prepare(context.upstream, { stored, cacheKey, isUncacheable });
  return proceed(context, instance, {
    kind: "fill",
    fill: fills.begin(flight, mayWait && waits < MAX_WAITS),
    fillRequest,
    stale: stored,
    isConditional,
    why: stored === null ? "miss" : isForced ? "request" : "stale",
    uncacheableKey: kind,
    isReceiving: false,
  });
}

/** Properties of the request that decide whether responses can be stored: requests of other kinds must not be affected. */
function kindOf({ headers, upstream }: RequestContext, own: Instance["own"]): string {
  const isOfCookies =
    own.ttl_default > 0 && own.key.cookies.length === 0 && headers["cookie"] !== undefined;
  const isAuthorized = own.cache_authorized && upstream.header("authorization") !== null;
  return (isOfCookies ? "\nwith cookies" : "") + (isAuthorized ? "\nauthorized" : "");
}

/** Requests with different Vary values do not wait for each other. */
function flightKey(
  { upstream }: RequestContext,
  { store }: Instance,
  { key, kind }: { readonly key: string; readonly kind: string },
): string {
  let flight = kind;
  for (const name of store.varyNames(key))
    flight += `\n${name}=${comparableValue(name, upstream.header(name))}`;
  return flight;
}

function proceed(
  context: RequestContext,
  { memoryKey }: Instance,
  decision: CacheDecision,
): undefined {
  context.memory.set(memoryKey, decision);
  return undefined;
}
