// What one instance of the cache holds in one worker; knows no request.
import type CachePolicy from "http-cache-semantics";
import { Cache } from "../../pdk/cache.ts";
import { compileCondition } from "../../pdk/condition.ts";
import type { RequestContext } from "../../pdk/context.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import { Answers } from "./answers.ts";
import { Fills } from "./fills.ts";
import { type KeyMaker, keyMaker } from "./key.ts";
import type { Config } from "./settings.ts";
import { Store, type Stored } from "./store.ts";
import { Storing } from "./storing.ts";

/** How long it is remembered that answers for a key cannot be stored, and that the service has failed. */
const USELESS_MS = 10_000;
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
  readonly answers: Answers;
  /** Null: nothing is passed by. */
  readonly bypasses: ((context: RequestContext) => boolean) | null;
  /** Keys whose answers could not be stored lately: nobody waits for another one. */
  readonly useless: Cache<true>;
  /** Keys for which the service has just failed. */
  readonly failing: Cache<true>;
  /** Answers that are being fetched anew. */
  readonly refreshing: Set<Stored>;
  /** Where requests keep their course. */
  readonly place: object;
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
    answers: new Answers(),
    bypasses: own.bypass_when === null ? null : compileCondition(own.bypass_when),
    useless: new Cache({ maxEntries: MAX_REMEMBERED, ttlMs: USELESS_MS }),
    failing: new Cache({ maxEntries: MAX_REMEMBERED, ttlMs: FAILING_MS }),
    refreshing: new Set(),
    place: {},
  };
}
