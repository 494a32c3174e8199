// A thread that sends a share of a trace to a cache; run by `make bench-cache`.
import type { CacheMemory } from "../../src/shared-memory/cache/cache-memory.ts";
import { SharedCache } from "../../src/shared-memory/cache/shared-cache.ts";
import { Random } from "../support/random.ts";

declare const self: Worker;

export interface TraceTask {
  readonly memory: CacheMemory;
  readonly worker: number;
  readonly requests: number;
  readonly keys: number;
}

const head = Buffer.alloc(300, "x");
const body = Buffer.alloc(1024, "y");

export const keyOf = (n: number) =>
  `GET https shop.example.com:443/some/path/of/a/page?id=${n} consumer:none`;

export const recordOf = (cache: { readonly epoch: number }, n: number) => ({
  key: keyOf(n),
  variant: "",
  resource: `shop.example.com/some/path/of/a/page?id=${n}`,
  tags: [],
  head,
  body,
  epoch: cache.epoch,
});

/** Ranks from 0 whose frequency falls with the rank (Zipf, exponent 1). */
export function zipf(keys: number): (random: Random) => number {
  const sums = new Float64Array(keys);
  let sum = 0;
  for (let rank = 0; rank < keys; rank++) {
    sum += 1 / (rank + 1);
    sums[rank] = sum;
  }
  return (random) => {
    const wanted = random.next() * sum;
    let [low, high] = [0, keys - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/** Looks up each key of the trace and stores what is missing; returns the hits. */
export function runTrace({ memory, worker, requests, keys }: TraceTask): number {
  const cache = new SharedCache(memory, { worker, decode: (bytes) => bytes.byteLength });
  const random = new Random(worker + 1);
  const next = zipf(keys);
  let hits = 0;
  for (let request = 0; request < requests; request++) {
    const n = next(random);
    if (cache.find(keyOf(n), () => true) !== null) hits++;
    else cache.put(recordOf(cache, n));
  }
  return hits;
}

if (!Bun.isMainThread)
  self.onmessage = ({ data }: MessageEvent<TraceTask>) => self.postMessage(runTrace(data));
