// Opens a cache that all workers share for one of them: its entries and its fetches in flight.
import type { CacheStore } from "../../pdk/cache-store.ts";
import { Flights } from "./flights.ts";
import type { CacheMemory } from "./cache-memory.ts";
import { SharedCache, type SharedCacheOptions } from "./shared-cache.ts";

export function openCache<Head>(
  memory: CacheMemory,
  options: SharedCacheOptions<Head>,
): CacheStore<Head> {
  const cache = new SharedCache<Head>(memory, options);
  const flights = new Flights(memory.flights, {
    thread: options.worker + 1,
    isOutdated: (resource, epoch) => cache.isOutdated({ resource, tags: [] }, epoch),
  });
  return Object.assign(cache, {
    lead: flights.lead.bind(flights),
    follow: flights.follow.bind(flights),
  });
}
