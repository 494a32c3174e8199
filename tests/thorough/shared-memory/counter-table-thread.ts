// A thread that counts as hard as it can; run by counter-table.test.ts.
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { Random } from "../../support/random.ts";

declare const self: Worker;

/** The task of a thread. */
export interface CountingTask {
  readonly buffer: SharedArrayBuffer;
  readonly worker: number;
  readonly workers: number;
  readonly rounds: number;
  /** Keys that all threads use. */
  readonly keys: number;
  /** Slots of each key that may be in use at a time. */
  readonly places: number;
  /** Counts the running threads, so that all begin together; then, by key, how many are inside. */
  readonly start: SharedArrayBuffer;
}

export interface CountingResult {
  /** Taken from buckets, by key. */
  readonly taken: readonly number[];
  /** What it entered and did not leave, by key. */
  readonly inside: readonly number[];
  /** How often more were inside than there are slots. */
  readonly tooMany: number;
}

self.onmessage = ({ data }: MessageEvent<CountingTask>) => {
  const start = new Int32Array(data.start);
  Atomics.add(start, 0, 1);
  Atomics.notify(start, 0);
  for (let there = Atomics.load(start, 0); there < data.workers; there = Atomics.load(start, 0))
    Atomics.wait(start, 0, there, 1000);
  self.postMessage(count(data));
};

/** A bucket that is never filled again while a test runs. */
const bucket = { capacity: 1000, perSecond: 0, cost: 1 };

function count({ buffer, worker, rounds, keys, places, start }: CountingTask): CountingResult {
  // The clock is fixed, so that one window counts everything.
  const counters = new CounterTable(buffer, { now: () => 1_000_000 }).forInstance(worker, "a");
  const seen = new Int32Array(start);
  const random = new Random(worker + 1);
  const taken = Array.from({ length: keys }, () => 0);
  const inside = Array.from({ length: keys }, () => 0);
  let tooMany = 0;
  for (let round = 0; round < rounds; round++) {
    const key = random.between(0, keys);
    counters.add(`key ${key}`, 1, 60_000);
    if (counters.take(`key ${key}`, bucket).wait === 0) taken[key]!++;
    if (!counters.enter(`key ${key}`, places)) continue;
    if (Atomics.add(seen, 1 + key, 1) >= places) tooMany++;
    if (random.chance(0.0001)) {
      inside[key]!++;
      continue;
    }
    Atomics.sub(seen, 1 + key, 1);
    counters.leave(`key ${key}`);
  }
  return { taken, inside, tooMany };
}
