// Storability and freshness of responses (RFC 9111 sections 3 and 4.2); knows no store.
import type { NotStored } from "../../pdk/cache-outcome.ts";
import { type Directives, parseDirectives, parseTargeted, seconds } from "./directives.ts";
import { parseHttpDate } from "./http-date.ts";

export interface FreshnessRules {
  /** Seconds for responses without explicit freshness; 0: not stored. */
  readonly ttlDefault: number;
  /** Heuristic lifetime as a share of the time since Last-Modified; 0: none. */
  readonly heuristic: number;
  /** The longest heuristic lifetime in seconds. */
  readonly heuristicMax: number;
  readonly respectsCacheControl: boolean;
  /** Targeted fields that are followed instead of Cache-Control, the first one first. */
  readonly targetFields: readonly string[];
  /** Statuses stored without explicit freshness. */
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
  readonly hasQuery: boolean;
}

/** Freshness of a response. Milliseconds. */
export interface Freshness {
  /** Initial age when received. */
  readonly ageMs: number;
  /** 0: each use needs a validation. */
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
  /** Never served stale, whatever a client accepts. */
  readonly mustRevalidate: boolean;
}

interface Received {
  readonly status: number;
  readonly headers: Headers;
}

/** What governs a response. */
interface Control {
  readonly directives: Directives;
  /** Null: absent, or overruled by a targeted field. */
  readonly expires: string | null;
  readonly isTargeted: boolean;
}

/** The reason when the response must not be stored. `delayMs`: between request and response. */
export function freshnessOf(
  response: Received & { readonly delayMs: number },
  request: StoringRequest,
  rules: FreshnessRules,
): Freshness | NotStored {
  const control = controlOf(response.headers, rules);
  const refusal = refusalOf(response, request, { control, rules });
  if (refusal !== null) return refusal;
  const lifetime = lifetimeOf(response, request, { control, rules });
  if (typeof lifetime === "string") return lifetime;
  const freshness = {
    ageMs: initialAge(response.headers, response.delayMs),
    lifetimeMs: lifetime * 1000,
    ...staleness(control.directives, rules),
  };
  return uselessness(freshness, response.headers, { control, request, rules }) ?? freshness;
}

const NOTHING_SAID: Control = { directives: new Map(), expires: null, isTargeted: false };

/** RFC 9213 section 2.2: the first valid targeted field replaces Cache-Control and Expires. */
function controlOf(headers: Headers, rules: FreshnessRules): Control {
  if (!rules.respectsCacheControl) return NOTHING_SAID;
  for (const name of rules.targetFields) {
    const value = headers.get(name);
    const directives = value === null ? null : parseTargeted(value);
    if (directives !== null) return { directives, expires: null, isTargeted: true };
  }
  const directives = parseDirectives(headers.get("cache-control"));
  return { directives, expires: headers.get("expires"), isTargeted: false };
}

interface Given {
  readonly control: Control;
  readonly rules: FreshnessRules;
}

/** Why the response must not be stored, however fresh it is (RFC 9111 section 3). */
function refusalOf(
  { status, headers }: Received,
  request: StoringRequest,
  { control: { directives: own }, rules }: Given,
): NotStored | null {
  if (request.cacheControl.has("no-store")) return "request_no_store";
  if (!isStorable(status) && !rules.statuses.has(status)) return "status";
  if (own.has("must-understand") && !UNDERSTOOD.has(status)) return "not_understood";
  if (own.has("no-store") && !own.has("must-understand")) return "no_store";
  // A list of headers would allow to store the others.
  if (own.has("private")) return "private";
  // RFC 9111 section 4.1: `Vary: *` never matches.
  if (variesOnEverything(headers)) return "vary_any";
  if (ENDLESS.test(headers.get("content-type") ?? "")) return "streaming";
  if (headers.has("set-cookie") && !rules.cacheSetCookie) return "set_cookie";
  if (request.hasAuthorization && !(rules.cacheAuthorized && permitsAuthorized(own)))
    return "authorization";
  return null;
}

/** Whose caching requirements the cache meets (RFC 9111 section 5.2.2.3). */
const UNDERSTOOD: ReadonlySet<number> = new Set([
  ...[200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410],
]);

/**
 * Others of the IANA registry. Parts (206) and 304 are no whole responses. Errors of this list can be caused by one unusual
 * request: a stored one would deny the page to all clients.
 */
const OTHER_REGISTERED: ReadonlySet<number> = new Set([
  ...[201, 202, 205, 206, 207, 208, 226, 304, 305, 306],
  ...[400, 401, 402, 403, 405, 406, 407, 408, 409, 411, 412, 413, 414, 415, 416, 417, 418],
  ...[421, 422, 423, 424, 425, 426, 428, 429, 431, 451],
  ...[500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511],
]);

/** Whether the status alone is no reason against storing a response with explicit freshness. */
const isStorable = (status: number): boolean =>
  status >= 200 && status <= 599 && !OTHER_REGISTERED.has(status);

const ENDLESS = /^\s*(?:text\/event-stream|multipart\/x-mixed-replace)\b/i;

const variesOnEverything = (headers: Headers) =>
  (headers.get("vary") ?? "").split(",").some((name) => name.trim() === "*");

/** RFC 9111 section 3.5. */
const permitsAuthorized = (own: Directives) =>
  own.has("public") || own.has("s-maxage") || own.has("must-revalidate");

/** Freshness lifetime in seconds (RFC 9111 section 4.2.1). */
function lifetimeOf(response: Received, request: StoringRequest, given: Given): number | NotStored {
  const { directives: own, expires } = given.control;
  if (own.has("no-cache")) return 0;
  const explicit = seconds(own, "s-maxage") ?? seconds(own, "max-age");
  if (explicit !== null) return explicit;
  if (expires === null) return implicitLifetimeOf(response, request, given);
  const expiresAt = parseHttpDate(expires);
  // RFC 9111 section 5.3: a date that is none is in the past.
  return expiresAt === null ? 0 : Math.max(0, (expiresAt - dateOf(response.headers)) / 1000);
}

/** Without explicit freshness: by Last-Modified (RFC 9111 section 4.2.2), or the default. */
function implicitLifetimeOf(
  { status, headers }: Received,
  request: StoringRequest,
  { control: { directives: own, isTargeted }, rules }: Given,
): number | NotStored {
  const isPublic = own.has("public");
  if (!rules.statuses.has(status) && !isPublic) return "status";
  const isUncached = /no-cache/i.test(headers.get("pragma") ?? "");
  if (isUncached && own.size === 0 && !isTargeted && rules.respectsCacheControl)
    return "no_freshness";
  const lastModified = parseHttpDate(headers.get("last-modified"));
  const isHeuristic =
    rules.heuristic > 0 &&
    rules.respectsCacheControl &&
    (isPublic || HEURISTICALLY_CACHEABLE.has(status)) &&
    lastModified !== null &&
    !request.hasQuery;
  const heuristic = isHeuristic
    ? Math.min(rules.heuristicMax, ((dateOf(headers) - lastModified) / 1000) * rules.heuristic)
    : 0;
  const lifetime = heuristic > 0 ? heuristic : rules.statuses.has(status) ? rules.ttlDefault : 0;
  if (lifetime === 0) return "no_freshness";
  // Without explicit freshness, a response to a request with cookies may be personal.
  const isPersonal = request.hasAuthorization || (request.hasCookies && !rules.keysCookies);
  return isPersonal && rules.respectsCacheControl ? "personal" : lifetime;
}

/** RFC 9110 section 15.1, without 206, which is no whole response. */
const HEURISTICALLY_CACHEABLE: ReadonlySet<number> = new Set([
  ...[200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501],
]);

/** Date, or now. */
const dateOf = (headers: Headers) => parseHttpDate(headers.get("date")) ?? Date.now();

/**
 * RFC 9111 section 4.2.3. Trusts Age, and compares Date with the local clock only behind an HTTP/1.0 hop, which may not add
 * Age: a clock difference would age fresh responses. Of several ages the first counts, and an invalid one does not (section 5.1).
 */
function initialAge(headers: Headers, delayMs: number): number {
  const [, age = "0"] = /^\s*(\d+)\s*(?:[,;]|$)/.exec(headers.get("age") ?? "") ?? [];
  const corrected = Math.min(Number(age), 2_147_483_648) * 1000 + delayMs;
  if (!/(?:^|,)\s*(?:http\/)?1\.0\s/i.test(headers.get("via") ?? "")) return corrected;
  return Math.max(corrected, Date.now() - dateOf(headers));
}

/** RFC 5861, and RFC 9111 section 4.2.4: a response that must be revalidated is never served stale. */
function staleness(own: Directives, rules: FreshnessRules) {
  const isForbidden = ["must-revalidate", "proxy-revalidate", "no-cache"].some((name) =>
    own.has(name),
  );
  if (isForbidden) return { staleWhileRevalidateMs: 0, staleIfErrorMs: 0, mustRevalidate: true };
  // s-maxage forbids it too, unless the response has the stale directive itself.
  const mustRevalidate = own.has("s-maxage");
  const of = (name: string, fallback: number) =>
    (seconds(own, name) ?? (mustRevalidate ? 0 : fallback)) * 1000;
  return {
    staleWhileRevalidateMs: of("stale-while-revalidate", rules.staleWhileRevalidate),
    staleIfErrorMs: of("stale-if-error", rules.staleIfError),
    mustRevalidate,
  };
}

/** Directives by which a service that knows caches allows all clients to get the response. */
const SHARED = ["public", "s-maxage", "stale-while-revalidate", "stale-if-error"] as const;

/** Why a response that is stale from the start is not stored; null: it is fresh, or a validation makes it useful. */
function uselessness(
  freshness: Freshness,
  headers: Headers,
  { control, request, rules }: Given & { readonly request: StoringRequest },
): NotStored | null {
  const { ageMs, lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs } = freshness;
  if (ageMs < lifetimeMs) return null;
  const canBeStale = ageMs < lifetimeMs + Math.max(staleWhileRevalidateMs, staleIfErrorMs);
  const canBeValidated =
    headers.has("etag") || parseHttpDate(headers.get("last-modified")) !== null;
  if (!canBeStale && !canBeValidated) return "no_validator";
  // Applications mark personal pages with no-cache, and validate them by the time of their last change for all users.
  const isShared = SHARED.some((name) => control.directives.has(name));
  return request.hasCookies && !rules.keysCookies && !isShared ? "personal" : null;
}
