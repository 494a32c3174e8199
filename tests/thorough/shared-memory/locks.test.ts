// Locks of shared memory: no clock takes one from a thread that stands still, and the supervisor frees those of a thread that ended.
import { afterEach, expect, test } from "bun:test";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { eventually } from "../../support/poll.ts";
import { type LockTask, signals } from "./locks-thread.ts";

const threads: Worker[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
});

/** Longer than the second after which locks were taken away. */
const PAUSE_MS = 1200;

function start(thread: number, shared: Omit<LockTask, "thread" | "signals">) {
  const words = new Int32Array(new SharedArrayBuffer(5 * 4));
  const worker = new Worker(new URL("./locks-thread.ts", import.meta.url));
  threads.push(worker);
  const gone = new Promise((resolve) => worker.addEventListener("close", resolve, { once: true }));
  worker.postMessage({ ...shared, thread, signals: words.buffer });
  const has = (signal: number) => Atomics.load(words, signal) === 1;
  return {
    words,
    has,
    until: (signal: number) => eventually(() => has(signal)),
    goOn() {
      Atomics.store(words, signals.goOn, 1);
      Atomics.notify(words, signals.goOn);
    },
    async terminate() {
      worker.terminate();
      await gone;
    },
  };
}

function scene() {
  const board = TargetBoard.create(2);
  const counters = CounterTable.create({ keys: 10, workers: 2 });
  return { board, counters, shared: { board: board.buffer, counters: counters.buffer } };
}

test("a holder that stands still for more than a second lets nobody in, and each increment counts", async () => {
  const { counters, shared } = scene();
  const first = start(1, shared);
  await first.until(signals.holds);
  const second = start(2, { ...shared });
  const at = performance.now();
  await eventually(() => performance.now() - at > PAUSE_MS);
  expect(counters.locks.acquire(0, 0)).toBe(false);
  expect(second.has(signals.holds)).toBe(false);
  first.goOn();
  await first.until(signals.left);
  second.goOn();
  await second.until(signals.left);
  expect([first, second].map(({ words }) => words[signals.count])).toEqual([1, 1]);
});

test("a thread that ended while it held locks frees them when the supervisor says so, not earlier", async () => {
  const { board, counters, shared } = scene();
  const holder = start(1, shared);
  await holder.until(signals.holds);
  await holder.terminate();
  const at = performance.now();
  await eventually(() => performance.now() - at > PAUSE_MS);
  expect([board.locks.acquire(0, 0), counters.locks.acquire(0, 0)]).toEqual([false, false]);
  for (const { locks } of [board, counters]) locks.free(2);
  expect(counters.locks.acquire(0, 0)).toBe(false);
  for (const { locks } of [board, counters]) locks.free(1);
  expect(board.rowOf("a")).toBeNumber();
  expect(board.addresses.enter("a", "10.0.0.1", { worker: 1, most: 1 })).toBe("counted");
  expect(counters.forInstance(1, "a").add("k", 1, 60_000).current).toBe(1);
});

test("a thread leaves its locks before it is terminated, and takes none any more", async () => {
  const { counters, shared } = scene();
  const holder = start(1, shared);
  await holder.until(signals.holds);
  // In the place of `end`, which would wait for it: the flag alone.
  setTimeout(() => holder.goOn(), 20);
  counters.locks.begin(2);
  counters.locks.end(2);
  expect(holder.has(signals.counted)).toBe(false);
  holder.goOn();
  counters.locks.end(1);
  expect(counters.locks.acquire(0, 1000)).toBe(true);
  counters.locks.release(0);
  await holder.terminate();
  expect(counters.locks.acquire(0, 0)).toBe(true);
});
