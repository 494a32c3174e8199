// What a cache reports about a request, for plugins and the data plane; knows no cache.
export {
  type CacheForward,
  type CacheOutcome,
  type CacheReason,
  type CacheStatus,
  encodeCacheOutcome,
  type NotStored,
} from "../model/cache-outcome.ts";
