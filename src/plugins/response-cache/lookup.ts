// What becomes of a request before it goes upstream: answered from the store, made to wait, or sent on; knows no answer of a target.
import { type Outcome, reject } from "../../pdk/response.ts";
import type { RequestContext } from "../../pdk/context.ts";
import { ageOf, type Manner, remainingOf } from "./answers.ts";
import type { Course } from "./course.ts";
import { type Directives, parseDirectives, seconds } from "./directives.ts";
import { type CacheKey, isOverridden } from "./key.ts";
import type { Instance } from "./instance.ts";
import { refresh } from "./refresh.ts";
import type { Stored } from "./store.ts";
import { comparableValue } from "./storing.ts";
import { conditionsOf, occasionOf, prepare } from "./upstream-request.ts";

/** How often one request waits for fetches of others. */
const MAX_WAITS = 3;

const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** The handler of the `request` phase: by then everybody who may refuse the request has seen it. */
export function lookUp(context: RequestContext, instance: Instance): Outcome | Promise<Outcome> {
  const { method } = context;
  const { upstream } = context;
  if (!SAFE.has(method) || !SAFE.has(upstream.method)) {
    const { host } = context;
    const resource = instance.keys.resourceOf({ host, path: upstream.path, query: upstream.query });
    return go(context, instance, { kind: "unsafe", resource });
  }
  if (!instance.methods.has(method) || upstream.method !== method)
    return go(context, instance, { kind: "bypass", why: "method" });
  if (isBypassed(context, instance))
    return go(context, instance, { kind: "bypass", why: "bypass" });
  const place = instance.keys.keyOf(context);
  if (place === null) return go(context, instance, { kind: "bypass", why: "bypass" });
  return decide(context, instance, { place, waits: 0 });
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

interface Try {
  readonly place: CacheKey;
  readonly waits: number;
}

function decide(
  context: RequestContext,
  instance: Instance,
  attempt: Try,
): Outcome | Promise<Outcome> {
  const { store, own } = instance;
  const { key } = attempt.place;
  const { upstream } = context;
  const fieldOf = (name: string) => comparableValue(name, upstream.header(name));
  const stored = store.find(key, fieldOf);
  const said = directivesOf(context, own.ignore_client_no_cache);
  if (stored !== null) {
    const now = performance.now();
    const manner = mannerOf(stored, instance, { said, waits: attempt.waits, now });
    if (manner !== null) {
      if (manner === "stale") refresh(context, instance, { stored, place: attempt.place });
      return answer(context, instance, { stored, manner, now });
    }
  }
  if (said?.has("only-if-cached") === true)
    return reject(504, "cache.only", { detail: "nothing of this is stored" });
  return fetchIt(context, instance, { ...attempt, stored, said });
}

/** What counts even where clients have nothing to say. */
const ALWAYS = /no-store|only-if-cached/i;

/** Cache-Control, or what Pragma stands for where there is none (RFC 9111 section 5.4); null: nothing that counts. */
function directivesOf({ headers }: RequestContext, isIgnored: boolean): Directives | null {
  const { "cache-control": control, pragma } = headers;
  if (control !== undefined)
    return isIgnored && !ALWAYS.test(control) ? null : parseDirectives(control);
  if (isIgnored || pragma === undefined || !/no-cache/i.test(pragma)) return null;
  return new Map([["no-cache", ""]]);
}

/** How the stored answer may be given without asking; null: it may not. */
function mannerOf(
  stored: Stored,
  { own, failing }: Instance,
  { said, waits, now }: { readonly said: Directives | null; readonly waits: number; now: number },
): Manner | null {
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
  // Just now the service did not answer: to ask again at once would not help it.
  if (-remaining < staleIfErrorMs && failing.get(stored.key) !== undefined) return "failed";
  return null;
}

function answer(
  context: RequestContext,
  { answers }: Instance,
  { stored, manner, now }: { readonly stored: Stored; readonly manner: Manner; now: number },
): Outcome {
  const header = conditionsOf(context, (name) => context.upstream.header(name));
  const { status, headers, body } = answers.shape(stored, header, { manner, now });
  const reason = manner === "hit" ? "cache.hit" : `cache.${manner}`;
  return { kind: "reply", status, reason, headers, body, hasSharedHeaders: true };
}

interface Fetch extends Try {
  readonly stored: Stored | null;
  readonly said: Directives | null;
}

function fetchIt(
  context: RequestContext,
  instance: Instance,
  { place, waits, stored, said }: Fetch,
): Outcome | Promise<Outcome> {
  const { fills, own, useless } = instance;
  const isWhole =
    context.method === "GET" && (stored !== null || context.upstream.header("range") === null);
  if (!isWhole) {
    if (context.method === "HEAD") {
      const occasion = occasionOf(context, place, said);
      return go(context, instance, { kind: "head", occasion, stale: stored });
    }
    return go(context, instance, { kind: "bypass", why: "partial" });
  }
  const kind = place.key + kindOf(context, own);
  const isUseless = useless.get(kind) !== undefined;
  const flight = {
    key: flightKey(context, instance, { key: place.key, kind }),
    resource: place.resource,
  };
  const mayWait = own.coalesce && !isUseless && said?.has("no-store") !== true;
  const leader = mayWait && waits < MAX_WAITS ? fills.leaderOf(flight.key) : null;
  if (leader !== null)
    return fills
      .wait(leader, context.signal)
      .then((verdict) =>
        verdict === "look"
          ? decide(context, instance, { place, waits: waits + 1 })
          : decide(context, instance, { place, waits: MAX_WAITS }),
      );
  const occasion = occasionOf(context, place, said);
  const isForced = stored !== null && remainingOf(stored, occasion.startedAt) > 0;
  const isConditional = prepare(context.upstream, { stored, place, isUseless });
  return go(context, instance, {
    kind: "fill",
    fill: fills.begin(flight, mayWait && waits < MAX_WAITS),
    occasion,
    stale: stored,
    isConditional,
    why: stored === null ? "miss" : isForced ? "request" : "stale",
    sort: kind,
    isReceiving: false,
  });
}

/** What answers to such requests can be stored or not for, beside the answer: nobody is to suffer for requests of others. */
function kindOf({ headers, upstream }: RequestContext, own: Instance["own"]): string {
  const isOfCookies =
    own.ttl_default > 0 && own.key.cookies.length === 0 && headers["cookie"] !== undefined;
  const isAuthorized = own.cache_authorized && upstream.header("authorization") !== null;
  return (isOfCookies ? "\nwith cookies" : "") + (isAuthorized ? "\nauthorized" : "");
}

/** Those whose answers differ do not wait for each other, as far as that is known. */
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

function go(context: RequestContext, { place }: Instance, course: Course): undefined {
  context.memory.set(place, course);
  return undefined;
}
