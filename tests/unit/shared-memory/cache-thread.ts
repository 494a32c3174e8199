// A thread that uses a cache as hard as it can, or stands still at a step of a change; run by tests/thorough/shared-memory/cache-threads.test.ts.
import type { CacheMemory } from "../../../src/shared-memory/cache/cache-memory.ts";
import { Random } from "../../support/random.ts";
import { faultOf, openCache, recordOf } from "./cache-support.ts";

declare const self: Worker;

/** The task of a thread. */
export interface CacheTask {
  readonly memory: CacheMemory;
  readonly worker: number;
  readonly rounds: number;
  readonly keys: number;
  readonly maxLength: number;
  /** Only stores, each time under another key. */
  readonly isFresh?: boolean;
  /** Stands still for ever the `count`th time that a change is at the step, and says so in the first word. */
  readonly stop?: {
    readonly step: string;
    readonly count: number;
    readonly said: SharedArrayBuffer;
  };
}

export interface CacheResult {
  readonly faults: readonly string[];
  readonly hits: number;
  readonly stored: number;
}

self.onmessage = ({ data }: MessageEvent<CacheTask>) => self.postMessage(use(data));

function use({ memory, worker, rounds, keys, maxLength, isFresh, stop }: CacheTask): CacheResult {
  let left = stop?.count ?? 0;
  const at = (step: string) => {
    if (stop === undefined || step !== stop.step || --left > 0) return;
    const said = new Int32Array(stop.said);
    Atomics.store(said, 0, 1);
    Atomics.notify(said, 0);
    for (;;) Atomics.wait(said, 0, 1, 1000);
  };
  const cache = openCache(memory, { worker, at: stop === undefined ? undefined : at });
  const random = new Random(worker + 1);
  const faults: string[] = [];
  let [hits, stored] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    if (isFresh === true) {
      if (cache.put(recordOf(cache, `${worker}-${round}`))) stored++;
      continue;
    }
    const key = `key-${random.between(0, keys)}`;
    const action = random.between(0, 20);
    if (action < 8) {
      const length = random.chance(0.1) ? random.between(0, maxLength) : random.between(0, 1000);
      const version = worker * 1_000_000 + round;
      if (cache.put(recordOf(cache, key, { length, version }))) stored++;
    } else if (action === 8) cache.invalidate(`h/${key}`);
    else if (action === 9) {
      const found = cache.find(key, () => true);
      if (found !== null) cache.remove(found);
    } else {
      const fault = faultOf(cache, key);
      if (fault !== null) faults.push(fault);
      else hits++;
    }
  }
  return { faults: faults.slice(0, 10), hits, stored };
}
