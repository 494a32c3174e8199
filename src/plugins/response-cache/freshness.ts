// Which answers may be stored, and for how long they are fresh (RFC 9111 sections 3 and 4.2); knows no store.
import type CachePolicy from "http-cache-semantics";
import { type Directives, parseDirectives, seconds, writeDirectives } from "./directives.ts";

export interface FreshnessRules {
  /** Seconds for answers that do not say it; 0: those are not stored. */
  readonly ttlDefault: number;
  readonly respectsCacheControl: boolean;
  readonly statuses: ReadonlySet<number>;
  /** Seconds for answers that do not say it. */
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  readonly cacheAuthorized: boolean;
  readonly cacheSetCookie: boolean;
  /** Whether cookies are part of the key, so that answers to different people are told apart. */
  readonly keysCookies: boolean;
}

/** What a request says about storing its answer. */
export interface StoringRequest {
  readonly cacheControl: Directives;
  /** As it goes upstream. */
  readonly hasAuthorization: boolean;
  readonly hasCookies: boolean;
}

/** How long an answer is good for. Milliseconds. */
export interface Freshness {
  /** When it came. */
  readonly ageMs: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
}

type Policy = typeof CachePolicy;

/** Null: the answer must not be stored. `delayMs`: between the request and its answer. */
export function freshnessOf(
  answer: { readonly status: number; readonly headers: Headers; readonly delayMs: number },
  request: StoringRequest,
  { rules, Policy }: { readonly rules: FreshnessRules; readonly Policy: Policy },
): Freshness | null {
  const { status, headers, delayMs } = answer;
  if (!rules.statuses.has(status)) return null;
  if (request.cacheControl.has("no-store")) return null;
  // RFC 9111 section 4.1: no other request would ever fit.
  if (variesOnEverything(headers)) return null;
  // Nobody is to wait for the end of what has none.
  if (NO_READ_LIMITS.test(headers.get("content-type") ?? "")) return null;
  if (headers.has("set-cookie") && !rules.cacheSetCookie) return null;
  const own = parseDirectives(headers.get("cache-control"));
  const permitted = permitsAuthorized(own);
  if (request.hasAuthorization && !(rules.cacheAuthorized && permitted)) return null;
  const lifetime = rules.respectsCacheControl
    ? lifetimeOf({ status, headers, own }, request, { rules, Policy })
    : rules.ttlDefault;
  const ageMs = initialAge(headers, delayMs);
  if (lifetime * 1000 <= ageMs) return null;
  return { ageMs, lifetimeMs: lifetime * 1000, ...staleness(own, rules) };
}

const NO_READ_LIMITS = /^\s*(?:text\/event-stream|multipart\/x-mixed-replace)\b/i;

const variesOnEverything = (headers: Headers) =>
  (headers.get("vary") ?? "").split(",").some((name) => name.trim() === "*");

/** RFC 9111 section 3.5. */
const permitsAuthorized = (own: Directives) =>
  own.has("public") || own.has("s-maxage") || own.has("must-revalidate");

/** Seconds; 0: must not be stored. */
function lifetimeOf(
  answer: { readonly status: number; readonly headers: Headers; readonly own: Directives },
  request: StoringRequest,
  { rules, Policy }: { readonly rules: FreshnessRules; readonly Policy: Policy },
): number {
  const { status, headers, own } = answer;
  const isExplicit = own.has("max-age") || own.has("s-maxage") || headers.has("expires");
  if (!isExplicit) {
    if (rules.ttlDefault === 0 || own.has("no-cache") || own.has("no-store") || own.has("private"))
      return 0;
    if (/no-cache/i.test(headers.get("pragma") ?? "") && own.size === 0) return 0;
    // Nobody has said that the answer is the same for all, and cookies tell people apart.
    if (request.hasAuthorization || (request.hasCookies && !rules.keysCookies)) return 0;
    return rules.ttlDefault;
  }
  // The policy compares names exactly, and takes proxy-revalidate for "always stale".
  const directives = new Map(own);
  directives.delete("proxy-revalidate");
  for (const name of ["max-age", "s-maxage"])
    if (directives.has(name)) directives.set(name, String(seconds(directives, name)));
  const fields: Record<string, string> = { "cache-control": writeDirectives(directives) };
  for (const name of ["expires", "date", "pragma"]) {
    const value = headers.get(name);
    if (value !== null) fields[name] = value;
  }
  if (own.size === 0) delete fields["cache-control"];
  const policy = new Policy(
    { method: "GET", headers: {} },
    { status, headers: fields },
    // Only what the origin says counts: no guesses from Last-Modified.
    { shared: true, cacheHeuristic: 0, immutableMinTimeToLive: 0 },
  );
  return policy.storable() && policy.timeToLive() > 0 ? policy.maxAge() : 0;
}

/**
 * RFC 9111 section 4.2.3. Age is believed, and Date is not compared with our clock unless a hop before speaks HTTP/1.0 and
 * may not have counted: clocks that differ would make fresh answers old.
 */
function initialAge(headers: Headers, delayMs: number): number {
  const age = (seconds(new Map([["age", headers.get("age")?.trim() ?? "0"]]), "age") ?? 0) * 1000;
  const corrected = age + delayMs;
  if (!/(?:^|,)\s*(?:http\/)?1\.0\s/i.test(headers.get("via") ?? "")) return corrected;
  const date = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(date) ? corrected : Math.max(corrected, Date.now() - date);
}

/** RFC 5861, and RFC 9111 section 4.2.4: what must be validated is never served stale. */
function staleness(own: Directives, rules: FreshnessRules) {
  const isForbidden =
    rules.respectsCacheControl &&
    ["must-revalidate", "proxy-revalidate", "no-cache"].some((name) => own.has(name));
  if (isForbidden) return { staleWhileRevalidateMs: 0, staleIfErrorMs: 0 };
  // s-maxage forbids it as well, but not where the origin itself names the other one.
  const mayDefault = !(rules.respectsCacheControl && own.has("s-maxage"));
  const of = (name: string, fallback: number) => {
    const said = rules.respectsCacheControl ? seconds(own, name) : null;
    return (said ?? (mayDefault ? fallback : 0)) * 1000;
  };
  return {
    staleWhileRevalidateMs: of("stale-while-revalidate", rules.staleWhileRevalidate),
    staleIfErrorMs: of("stale-if-error", rules.staleIfError),
  };
}
