// Storability and freshness of responses (RFC 9111 sections 3 and 4.2); knows no store.
import type CachePolicy from "http-cache-semantics";
import { type Directives, parseDirectives, seconds, writeDirectives } from "./directives.ts";

export interface FreshnessRules {
  /** Seconds for responses without explicit freshness; 0: not stored. */
  readonly ttlDefault: number;
  readonly respectsCacheControl: boolean;
  readonly statuses: ReadonlySet<number>;
  /** Seconds for responses without the directive. */
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  readonly cacheAuthorized: boolean;
  readonly cacheSetCookie: boolean;
  /** Whether cookies are part of the key, so that responses are separate per user. */
  readonly keysCookies: boolean;
}

/** The properties of a request that affect storing. */
export interface StoringRequest {
  readonly cacheControl: Directives;
  /** In the upstream request. */
  readonly hasAuthorization: boolean;
  readonly hasCookies: boolean;
}

/** Freshness of a response. Milliseconds. */
export interface Freshness {
  /** Initial age when received. */
  readonly ageMs: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
}

type Policy = typeof CachePolicy;

/** Null: the response must not be stored. `delayMs`: between request and response. */
export function freshnessOf(
  response: { readonly status: number; readonly headers: Headers; readonly delayMs: number },
  request: StoringRequest,
  { rules, Policy }: { readonly rules: FreshnessRules; readonly Policy: Policy },
): Freshness | null {
  const { status, headers, delayMs } = response;
  if (!rules.statuses.has(status)) return null;
  if (request.cacheControl.has("no-store")) return null;
  // RFC 9111 section 4.1: `Vary: *` never matches.
  if (variesOnEverything(headers)) return null;
  // Streams without an end.
  if (ENDLESS.test(headers.get("content-type") ?? "")) return null;
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

const ENDLESS = /^\s*(?:text\/event-stream|multipart\/x-mixed-replace)\b/i;

const variesOnEverything = (headers: Headers) =>
  (headers.get("vary") ?? "").split(",").some((name) => name.trim() === "*");

/** RFC 9111 section 3.5. */
const permitsAuthorized = (own: Directives) =>
  own.has("public") || own.has("s-maxage") || own.has("must-revalidate");

/** Freshness lifetime in seconds; 0: must not be stored. */
function lifetimeOf(
  response: { readonly status: number; readonly headers: Headers; readonly own: Directives },
  request: StoringRequest,
  { rules, Policy }: { readonly rules: FreshnessRules; readonly Policy: Policy },
): number {
  const { status, headers, own } = response;
  const isExplicit = own.has("max-age") || own.has("s-maxage") || headers.has("expires");
  if (!isExplicit) {
    if (rules.ttlDefault === 0 || own.has("no-cache") || own.has("no-store") || own.has("private"))
      return 0;
    if (/no-cache/i.test(headers.get("pragma") ?? "") && own.size === 0) return 0;
    // Without explicit freshness, a response to a request with cookies may be personal.
    if (request.hasAuthorization || (request.hasCookies && !rules.keysCookies)) return 0;
    return rules.ttlDefault;
  }
  // The package compares names exactly, and treats proxy-revalidate as "always stale".
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
    // Explicit freshness only, no heuristics from Last-Modified.
    { shared: true, cacheHeuristic: 0, immutableMinTimeToLive: 0 },
  );
  return policy.storable() && policy.timeToLive() > 0 ? policy.maxAge() : 0;
}

/**
 * RFC 9111 section 4.2.3. Trusts Age, and compares Date with the local clock only behind an HTTP/1.0 hop, which may not add
 * Age: a clock difference would age fresh responses.
 */
function initialAge(headers: Headers, delayMs: number): number {
  const age = (seconds(new Map([["age", headers.get("age")?.trim() ?? "0"]]), "age") ?? 0) * 1000;
  const corrected = age + delayMs;
  if (!/(?:^|,)\s*(?:http\/)?1\.0\s/i.test(headers.get("via") ?? "")) return corrected;
  const date = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(date) ? corrected : Math.max(corrected, Date.now() - date);
}

/** RFC 5861, and RFC 9111 section 4.2.4: a response that must be revalidated is never served stale. */
function staleness(own: Directives, rules: FreshnessRules) {
  const isForbidden =
    rules.respectsCacheControl &&
    ["must-revalidate", "proxy-revalidate", "no-cache"].some((name) => own.has(name));
  if (isForbidden) return { staleWhileRevalidateMs: 0, staleIfErrorMs: 0 };
  // s-maxage forbids it too, unless the response has the stale directive itself.
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
