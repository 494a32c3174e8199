// The state of one cache instance in one worker; knows no request.
import type CachePolicy from "http-cache-semantics";
import { Cache } from "../../pdk/cache.ts";
import { compileCondition } from "../../pdk/condition.ts";
import type { RequestContext } from "../../pdk/context.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import { CachedResponses } from "./cached-responses.ts";
import { Fills } from "./fills.ts";
import { type KeyMaker, keyMaker } from "./key.ts";
import type { Config } from "./settings.ts";
import { Store, type Stored } from "./store.ts";
import { Storing } from "./storing.ts";

/** How long a key counts as uncacheable, and a service as failing. */
const UNCACHEABLE_MS = 10_000;
const FAILING_MS = 1_000;
const MAX_REMEMBERED = 10_000;

export interface Instance {
  readonly own: Config;
  readonly kit: PluginKit;
  readonly methods: ReadonlySet<string>;
  readonly keys: KeyMaker;
  readonly store: Store;
  readonly fills: Fills;
  readonly storing: Storing;
  readonly cachedResponses: CachedResponses;
  /** Null: no bypass condition. */
  readonly bypasses: ((context: RequestContext) => boolean) | null;
  /** Keys whose last response could not be stored: requests for them do not wait. */
  readonly uncacheable: Cache<true>;
  /** Keys with a recent failure of the service. */
  readonly failing: Cache<true>;
  /** Responses being refreshed. */
  readonly refreshing: Set<Stored>;
  /** Memory key of the decision about a request. */
  readonly memoryKey: object;
}

export function createInstance(own: Config, kit: PluginKit, Policy: typeof CachePolicy): Instance {
  const varyNames = [...new Set(own.vary_headers.map((name) => name.toLowerCase()))];
  return {
    own,
    kit,
    methods: new Set(own.methods),
    keys: keyMaker(own),
    store: new Store(Math.floor(own.max_total / kit.workers)),
    fills: new Fills(),
    storing: new Storing(
      {
        ttlDefault: own.ttl_default,
        respectsCacheControl: own.respect_cache_control,
        statuses: new Set(own.statuses),
        staleWhileRevalidate: own.stale_while_revalidate,
        staleIfError: own.stale_if_error,
        cacheAuthorized: own.cache_authorized,
        cacheSetCookie: own.cache_set_cookie,
        keysCookies: own.key.cookies.length > 0,
      },
      { Policy, varyNames },
    ),
    cachedResponses: new CachedResponses(),
    bypasses: own.bypass_when === null ? null : compileCondition(own.bypass_when),
    uncacheable: new Cache({ maxEntries: MAX_REMEMBERED, ttlMs: UNCACHEABLE_MS }),
    failing: new Cache({ maxEntries: MAX_REMEMBERED, ttlMs: FAILING_MS }),
    refreshing: new Set(),
    memoryKey: {},
  };
}
