// The state of one cache instance in one worker; knows no request.
import { Cache } from "../../pdk/cache.ts";
import { compileCondition } from "../../pdk/condition.ts";
import type { RequestContext } from "../../pdk/context.ts";
import type { CacheOpener, PluginKit } from "../../pdk/kit.ts";
import { CachedResponses } from "./cached-responses.ts";
import { type Comparer, comparer } from "./comparable.ts";
import { Disk } from "./disk.ts";
import { loadFiles } from "./disk-load.ts";
import { type Fill, Fills } from "./fills.ts";
import { type KeyMaker, keyMaker } from "./key.ts";
import type { Config } from "./settings.ts";
import { decodeHead, Store, type Stored } from "./store.ts";
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
  /** Null: all bodies are in the store. */
  readonly disk: Disk | null;
  readonly fills: Fills;
  readonly storing: Storing;
  readonly cachedResponses: CachedResponses;
  /** For request headers in Vary. */
  readonly comparable: Comparer;
  /** Null: no bypass condition. */
  readonly bypasses: ((context: RequestContext) => boolean) | null;
  /** Keys whose last response could not be stored: requests for them do not wait. */
  readonly uncacheable: Cache<true>;
  /** Keys with a recent failure of the service. */
  readonly failing: Cache<true>;
  /** Refreshes of stored responses by this worker. */
  readonly refreshing: Set<Fill>;
  /** Memory key of the decision about a request. */
  readonly memoryKey: object;
  /** Memory key of the files that a request has opened. */
  readonly filesKey: object;
}

export function createInstance(own: Config, kit: PluginKit, open: CacheOpener): Instance {
  const disk = diskOf(own, kit);
  const onFileRemoved = ({ file }: Stored) => {
    if (file !== undefined) disk?.remove(file.name);
  };
  const cache = open({ decode: decodeHead, onFileRemoved });
  const store = new Store(cache, disk);
  if (disk !== null) void loadEarlierFiles(kit, store, disk);
  const varyNames = [...new Set(own.vary_headers.map((name) => name.toLowerCase()))];
  return {
    own,
    kit,
    methods: new Set(own.methods),
    keys: keyMaker(own),
    store,
    disk,
    fills: new Fills(cache),
    storing: new Storing(
      {
        ttlDefault: own.ttl_default,
        heuristic: own.heuristic,
        heuristicMax: own.heuristic_max,
        respectsCacheControl: own.respect_cache_control,
        targetFields: own.target_fields,
        statuses: new Set(own.statuses),
        staleWhileRevalidate: own.stale_while_revalidate,
        staleIfError: own.stale_if_error,
        cacheAuthorized: own.cache_authorized,
        cacheSetCookie: own.cache_set_cookie,
        keysCookies: own.key.cookies.length > 0,
      },
      varyNames,
      own.key.host,
    ),
    cachedResponses: new CachedResponses(),
    comparable: comparer(),
    bypasses: own.bypass_when === null ? null : compileCondition(own.bypass_when),
    uncacheable: new Cache({ maxEntries: MAX_REMEMBERED, ttlMs: UNCACHEABLE_MS }),
    failing: new Cache({ maxEntries: MAX_REMEMBERED, ttlMs: FAILING_MS }),
    refreshing: new Set(),
    memoryKey: {},
    filesKey: {},
  };
}

/** Null: all bodies are in the store. */
function diskOf(own: Config, { cacheDirectory, worker, workers, log }: PluginKit): Disk | null {
  if (cacheDirectory === null) return null;
  return new Disk({
    directory: cacheDirectory.path,
    worker,
    workers,
    maxIncomplete: own.disk_total,
    warn: (message, fields) => log("warn", message, fields),
  });
}

/** One worker does it for all. */
async function loadEarlierFiles(
  { cacheDirectory, worker, log }: PluginKit,
  store: Store,
  { signal }: Disk,
): Promise<void> {
  if (cacheDirectory === null || worker !== 0) return;
  try {
    const responses = await loadFiles({ directory: cacheDirectory, store, signal });
    if (responses > 0) log("info", "responses of the last run are cached again", { responses });
  } catch (error) {
    log("warn", "the files of the last run cannot be loaded", { error: String(error) });
  }
}

/** Releases all waiting requests. */
export function close({ fills, disk }: Instance): void {
  fills.close();
  disk?.close();
}
