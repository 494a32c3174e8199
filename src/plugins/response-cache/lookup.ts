// Decides about a request: serve from the store, wait for another fetch, or go upstream; knows no upstream response.
import { fieldsOfReply, type Outcome, reject, type Reply, replyWith } from "../../pdk/response.ts";
import type { RequestContext } from "../../pdk/context.ts";
import type { CacheForward, CacheOutcome, CacheReason } from "../../pdk/cache-outcome.ts";
import { ageOf, remainingOf } from "./cached-responses.ts";
import type { CacheDecision } from "./cache-decision.ts";
import { forwarded, HIT } from "./cache-status.ts";
import { type Directives, parseDirectives, seconds } from "./directives.ts";
import { DiskBody } from "./disk-body.ts";
import { type CacheKey, isOverridden } from "./key.ts";
import type { Instance } from "./instance.ts";
import { refresh } from "./refresh.ts";
import type { Stored } from "./store.ts";
import {
  conditionsOf,
  fillRequestOf,
  hasConditions,
  NO_CONDITIONS,
  prepare,
} from "./upstream-request.ts";

/** How often a request waits for fetches of others. */
const MAX_WAITS = 3;

/** How a stored response may be served without a fetch. */
type HitKind = "hit" | "collapsed" | "stale" | "failed";

const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** The handler of the `request` phase, which runs after all plugins that may reject the request. */
export function lookUp(context: RequestContext, instance: Instance): Outcome | Promise<Outcome> {
  const { method } = context;
  const { upstream } = context;
  if (!SAFE.has(method) || !SAFE.has(upstream.method)) {
    const { host } = context;
    const resource = instance.keys.resourceOf({ host, path: upstream.path, query: upstream.query });
    return proceed(context, instance, { kind: "unsafe", outcome: OF_METHOD, resource });
  }
  if (!instance.methods.has(method) || upstream.method !== method)
    return proceed(context, instance, { kind: "bypass", outcome: OF_METHOD });
  const reason = bypassReason(context, instance);
  if (reason !== null) return proceed(context, instance, bypassed(reason));
  const cacheKey = instance.keys.keyOf(context);
  if (cacheKey === null) return proceed(context, instance, bypassed("unknown_client"));
  return decide(context, instance, { cacheKey, waits: 0, fwd: null });
}

const ONLY_STORED: CacheOutcome = { ...HIT, status: "miss", reason: "only_if_cached" };

/** Null: the cache is asked. */
function bypassReason(context: RequestContext, instance: Instance): CacheReason | null {
  const { headers, upstream } = context;
  if (context.hasBody) return "request_body";
  if (context.route === null) return "no_route";
  if (headers["upgrade"] !== undefined) return "upgrade";
  if (headers["if-match"] !== undefined || headers["if-unmodified-since"] !== undefined)
    return "precondition";
  if (!instance.own.cache_authorized && upstream.header("authorization") !== null)
    return "request_authorization";
  if (isOverridden(context)) return "override";
  return instance.bypasses?.(context) === true ? "condition" : null;
}

const bypassed = (reason: CacheReason, fwd: CacheForward = "bypass"): CacheDecision => ({
  kind: "bypass",
  outcome: { status: "bypass", fwd, stored: false, collapsed: null, reason },
});

const OF_METHOD = bypassed("method", "method").outcome;

interface Lookup {
  readonly cacheKey: CacheKey;
  readonly waits: number;
  /** Why it would have gone upstream before it waited; null: it has not waited. */
  readonly fwd: CacheForward | null;
}

function decide(
  context: RequestContext,
  instance: Instance,
  attempt: Lookup,
): Outcome | Promise<Outcome> {
  const { store, own } = instance;
  const { key } = attempt.cacheKey;
  const stored = store.find(key, fieldsOf(context, instance));
  const said = directivesOf(context, own.ignore_client_no_cache);
  if (stored !== null) {
    const now = performance.now();
    const hitKind = hitKindOf(stored, instance, { said, waits: attempt.waits, now });
    if (hitKind !== null && stored.file !== undefined)
      return serveFile(context, instance, { attempt, stored, hitKind });
    if (hitKind !== null) {
      const hit = serveHit(context, instance, { stored, hitKind, fwd: attempt.fwd, now });
      if (hit === null) {
        // Another worker has removed it in between; a broken one must not be found again.
        store.remove(stored);
        return decide(context, instance, attempt);
      }
      if (hitKind === "stale") refresh(context, instance, { stored, cacheKey: attempt.cacheKey });
      return hit;
    }
  }
  if (said?.has("only-if-cached") === true) {
    context.noteCache(instance.kit.instance, ONLY_STORED);
    return reject(504, "cache.only", { detail: "there is no stored response" });
  }
  // What a fetch validates it may have to serve.
  if (stored?.file !== undefined && context.method === "GET")
    return openStale(context, instance, stored).then((opened) =>
      opened === "busy"
        ? proceed(context, instance, bypassed("store_refused"))
        : fetchUpstream(context, instance, { ...attempt, stored: opened, said }),
    );
  return fetchUpstream(context, instance, { ...attempt, stored, said });
}

/** Serves a response whose body is in a file; a file that is missing or broken is a miss. */
async function serveFile(
  context: RequestContext,
  instance: Instance,
  { attempt, stored, hitKind }: { attempt: Lookup; stored: Stored; hitKind: HitKind },
): Promise<Outcome> {
  const opened = await openBody(context, instance, stored);
  if (opened === "busy") return proceed(context, instance, bypassed("store_refused"));
  const { fwd } = attempt;
  const now = performance.now();
  const hit =
    opened === null ? null : serveHit(context, instance, { stored: opened, hitKind, fwd, now });
  const body = hit === null ? null : await loaded(context, hit.body);
  if (body === null || hit === null) {
    instance.store.remove(stored);
    return decide(context, instance, attempt);
  }
  if (hitKind === "stale") refresh(context, instance, { stored, cacheKey: attempt.cacheKey });
  return replyWith(hit.status, hit.reason, {
    fields: fieldsOfReply(hit),
    body: body === "none" ? null : body,
  });
}

/** Null: the body is broken. */
async function loaded(context: RequestContext, body: Reply["body"]) {
  if (body === null) return "none";
  return body instanceof DiskBody && context.method !== "HEAD" ? await body.load() : body;
}

/** The response with its body; null: the file is missing. The end of the request closes it. */
async function openBody(
  { memory }: RequestContext,
  { disk, filesKey }: Instance,
  stored: Stored,
): Promise<Stored | null | "busy"> {
  const { file } = stored;
  if (disk === null || file === undefined) return null;
  const body = await disk.open(file.name, file.length);
  if (body === null || body === "busy") return body;
  const others = (memory.get(filesKey) as readonly DiskBody[] | undefined) ?? [];
  memory.set(filesKey, [...others, body]);
  return stored.withBody(body);
}

async function openStale(
  context: RequestContext,
  instance: Instance,
  stored: Stored,
): Promise<Stored | null | "busy"> {
  const opened = await openBody(context, instance, stored);
  if (opened === "busy") return opened;
  const body = opened?.body() ?? null;
  const own = body instanceof DiskBody ? await body.load() : body;
  if (own !== null) return stored.withBody(own);
  instance.store.remove(stored);
  return null;
}

/** Reads the upstream request headers, for comparison with those of a variant. */
const fieldsOf =
  ({ upstream }: RequestContext, { comparable }: Instance) =>
  (name: string): string | null =>
    comparable(name, upstream.header(name));

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
  const wishes = own.ignore_client_no_cache || waits > 0 ? null : said;
  if (wishes !== null && isUnwanted(stored, wishes, now)) return null;
  if (remaining > 0) return waits > 0 ? "collapsed" : "hit";
  if (-remaining < staleWhileRevalidateMs) return "stale";
  if (wishes !== null && acceptsStale(stored, wishes, -remaining)) return "stale";
  // The service has just failed: spare it another request.
  if (-remaining < staleIfErrorMs && failing.get(stored.key) !== undefined) return "failed";
  return null;
}

/** RFC 9111 section 5.2.1. */
function isUnwanted(stored: Stored, wishes: Directives, now: number): boolean {
  if (wishes.has("no-cache")) return true;
  const remaining = remainingOf(stored, now);
  const minFresh = seconds(wishes, "min-fresh");
  if (minFresh !== null && remaining < minFresh * 1000) return true;
  const maxAge = seconds(wishes, "max-age");
  if (maxAge === null || ageOf(stored, now) <= maxAge * 1000) return false;
  // A reload sends max-age=0, which does not concern an immutable response (RFC 8246 section 2).
  const isImmutable = parseDirectives(stored.headers.get("cache-control")).has("immutable");
  return remaining <= 0 || !isImmutable;
}

/** RFC 9111 section 5.2.1.2; without a number the client accepts any staleness. */
function acceptsStale({ freshness }: Stored, wishes: Directives, staleMs: number): boolean {
  const limit = wishes.get("max-stale");
  if (limit === undefined || freshness.mustRevalidate) return false;
  return limit === "" || staleMs <= (seconds(wishes, "max-stale") ?? 0) * 1000;
}

function serveHit(
  context: RequestContext,
  { cachedResponses, kit }: Instance,
  by: {
    readonly stored: Stored;
    readonly hitKind: HitKind;
    readonly fwd: CacheForward | null;
    readonly now: number;
  },
): Reply | null {
  const { stored, hitKind, now } = by;
  const header = hasConditions(context)
    ? conditionsOf(context, (name) => context.upstream.header(name))
    : NO_CONDITIONS;
  const outcome = hitOf(by);
  const shaped = cachedResponses.shape(stored, header, { outcome, now });
  if (shaped === null) return null;
  context.noteCache(kit.instance, outcome);
  const { status, fields, body } = shaped;
  const reason = hitKind === "hit" ? "cache.hit" : `cache.${hitKind}`;
  return replyWith(status, reason, { fields, body });
}

function hitOf({ stored, hitKind, fwd, now }: Parameters<typeof serveHit>[2]): CacheOutcome {
  const isBackground = -remainingOf(stored, now) < stored.freshness.staleWhileRevalidateMs;
  switch (hitKind) {
    case "hit":
      return HIT;
    case "collapsed":
      return { ...HIT, fwd, collapsed: true };
    case "stale":
      return {
        ...HIT,
        status: "stale",
        reason: isBackground ? "stale_while_revalidate" : "max_stale",
      };
    case "failed":
      return { ...HIT, status: "stale", reason: "stale_if_error" };
    default:
      return hitKind satisfies never;
  }
}

interface Fetch extends Lookup {
  readonly stored: Stored | null;
  readonly said: Directives | null;
}

function fetchUpstream(
  context: RequestContext,
  instance: Instance,
  { cacheKey, waits, stored: found, said }: Fetch,
): Outcome | Promise<Outcome> {
  const { fills, own, store, uncacheable } = instance;
  const { epoch } = store;
  const fwd = forwardOf(found, instance, cacheKey.key);
  const isWhole =
    context.method === "GET" && (found !== null || context.upstream.header("range") === null);
  if (!isWhole) {
    if (context.method === "HEAD") {
      const fillRequest = fillRequestOf(context, { cacheKey, said, epoch });
      const outcome: CacheOutcome = { ...forwarded(fwd, null), status: "miss", reason: "head" };
      return proceed(context, instance, { kind: "head", outcome, fillRequest, stale: found });
    }
    return proceed(context, instance, bypassed("range", fwd));
  }
  const { key } = cacheKey;
  const kind = key + kindOf(context, own);
  const isUncacheable = uncacheable.get(kind) !== undefined;
  const flight = {
    key: flightKey(context, instance, { key, kind }),
    resource: cacheKey.resource,
    epoch,
  };
  const mayWait =
    own.coalesce && !isUncacheable && said?.has("no-store") !== true && waits < MAX_WAITS;
  const fill = mayWait ? fills.join(flight) : fills.alone();
  if (fill instanceof Promise)
    return fills
      .wait(fill, context.signal)
      .then((verdict) =>
        verdict === "look"
          ? decide(context, instance, { cacheKey, waits: waits + 1, fwd })
          : decide(context, instance, { cacheKey, waits: MAX_WAITS, fwd }),
      );
  // The fetch of another worker may have ended since the lookup.
  if (
    fill.flight !== null &&
    !store.isUnchanged(found, { key, fieldOf: fieldsOf(context, instance) })
  ) {
    fills.abandoned(fill);
    return decide(context, instance, { cacheKey, waits, fwd });
  }
  const fillRequest = fillRequestOf(context, { cacheKey, said, epoch });
  const stored = found?.withOwnBody() ?? null;
  const isConditional = prepare(context.upstream, { stored, cacheKey, isUncacheable });
  return proceed(context, instance, {
    kind: "fill",
    outcome: forwarded(fwd, waits > 0 ? false : null),
    fill,
    fillRequest,
    stale: stored,
    isConditional,
    uncacheableKey: kind,
    isReceiving: false,
  });
}

/** The lookup has found a response of another variant, or of none, or one that may not be served. */
function forwardOf(found: Stored | null, { store }: Instance, key: string): CacheForward {
  if (found !== null) return remainingOf(found, performance.now()) > 0 ? "request" : "stale";
  return store.varyNames(key).length > 0 ? "vary-miss" : "uri-miss";
}

/** Properties of the request that decide whether responses can be stored: requests of other kinds must not be affected. */
function kindOf({ headers, upstream }: RequestContext, own: Instance["own"]): string {
  const isImplicit = own.ttl_default > 0 || own.heuristic > 0;
  const isOfCookies = isImplicit && own.key.cookies.length === 0 && headers["cookie"] !== undefined;
  const isAuthorized = own.cache_authorized && upstream.header("authorization") !== null;
  return (isOfCookies ? "\nwith cookies" : "") + (isAuthorized ? "\nauthorized" : "");
}

/** Requests with different Vary values do not wait for each other. */
function flightKey(
  context: RequestContext,
  instance: Instance,
  { key, kind }: { readonly key: string; readonly kind: string },
): string {
  const { store } = instance;
  let flight = kind;
  const fieldOf = fieldsOf(context, instance);
  for (const name of store.varyNames(key)) flight += `\n${name}=${fieldOf(name)}`;
  return flight;
}

function proceed(
  context: RequestContext,
  { kit, memoryKey }: Instance,
  decision: CacheDecision,
): undefined {
  context.noteCache(kit.instance, decision.outcome);
  context.memory.set(memoryKey, decision);
  return undefined;
}
