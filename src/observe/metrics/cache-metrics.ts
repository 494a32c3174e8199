// Metrics of caches: requests by outcome, bytes, and what their memory holds; knows no memory and no format.
import { cacheStatuses } from "../../model/cache-outcome.ts";
import type { Metric } from "./text-format.ts";
import type { CountedTraffic } from "./series-rows.ts";
import { byLabels, counter } from "./traffic-samples.ts";

/** What the store of one instance holds, over all workers. */
export interface CacheFigures {
  readonly entries: number;
  /** Bytes of memory in use, and their limit. */
  readonly bytes: number;
  readonly maxBytes: number;
  /** Bytes in files. */
  readonly fileBytes: number;
  /** Entries removed to make room, since the instance was written. */
  readonly evictions: number;
}

export interface CacheSources {
  readonly counted: readonly CountedTraffic[];
  /** By the id of the instance. */
  readonly figures: ReadonlyMap<string, CacheFigures>;
  /** The value of the label `plugin`. */
  readonly nameOf: (id: string) => string;
}

export function cacheMetrics({ counted, figures, nameOf }: CacheSources): Metric[] {
  const requests = byLabels(counted, ["cache"], ({ name }) => ({ plugin: name }));
  const stored = (
    type: "counter" | "gauge",
    member: keyof CacheFigures,
    about: Pick<Metric, "name" | "help">,
  ): Metric => ({
    ...about,
    type,
    samples: Array.from(figures, ([id, figure]) => ({
      labels: { plugin: nameOf(id) },
      value: figure[member],
    })),
  });
  return [
    {
      name: "sluice_cache_requests",
      help: "Requests by what the cache did: hit, stale, revalidated, miss, expired, bypass.",
      type: "counter",
      samples: requests.flatMap(({ labels, traffic: { counters } }) =>
        cacheStatuses.map((status) => ({
          labels: { ...labels, status },
          value: counters[`cache_${status}`],
        })),
      ),
    },
    counter(requests, "cache_collapsed", {
      name: "sluice_cache_collapsed_requests",
      help: "Those that waited for another request, and got its response.",
    }),
    counter(requests, "cache_bytes", {
      name: "sluice_cache_served_bytes",
      help: "Body bytes of hit, stale and revalidated responses to clients.",
    }),
    stored("gauge", "entries", { name: "sluice_cache_entries", help: "Stored responses." }),
    stored("gauge", "bytes", {
      name: "sluice_cache_bytes",
      help: "Memory of stored responses, over all workers.",
    }),
    stored("gauge", "maxBytes", {
      name: "sluice_cache_limit_bytes",
      help: "Limit of this memory: max_total.",
    }),
    stored("gauge", "fileBytes", {
      name: "sluice_cache_file_bytes",
      help: "Bodies of stored responses in files.",
    }),
    stored("counter", "evictions", {
      name: "sluice_cache_evictions",
      help: "Stored responses removed to make room for others.",
    }),
  ];
}
