// The shared cache in several real threads: no torn read, exact lists afterwards, and threads that end at any step of a change.
import { afterEach, expect, test } from "bun:test";
import { CacheMaintenance } from "../../../src/shared-memory/cache/cache-maintenance.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import {
  checkCache,
  faultOf,
  has,
  openCache,
  recordOf,
} from "../../unit/shared-memory/cache-support.ts";
import type { CacheResult, CacheTask } from "../../unit/shared-memory/cache-thread.ts";

const threads: Worker[] = [];
const open: CacheMaintenance[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
  for (const each of open.splice(0)) void each.close();
});

function start(task: CacheTask): {
  readonly thread: Worker;
  readonly result: Promise<CacheResult>;
} {
  const thread = new Worker(new URL("../../unit/shared-memory/cache-thread.ts", import.meta.url));
  threads.push(thread);
  const { promise, resolve, reject } = Promise.withResolvers<CacheResult>();
  thread.addEventListener("message", ({ data }: MessageEvent<CacheResult>) => resolve(data));
  thread.addEventListener("error", (event) => reject(new Error(event.message)));
  thread.postMessage(task);
  return { thread, result: promise };
}

function maintain(...args: ConstructorParameters<typeof CacheMaintenance>): CacheMaintenance {
  const maintenance = new CacheMaintenance(...args);
  open.push(maintenance);
  return maintenance;
}

/** A thread that has found the lock held leaves something to free. */
async function tidy(maintenance: CacheMaintenance, workers: number): Promise<void> {
  for (let worker = 0; worker < workers; worker++) await maintenance.forgetWorker(worker);
  await maintenance.purge({ by: "tag", value: "none" }, { soft: false });
}

// Small, so that blocks and segments change their use all the time.
const MAX_BYTES = 1_048_576;

for (const [what, load] of [
  ["short entries", { rounds: 40_000, keys: 2000, maxLength: 20_000 }],
  ["entries of more blocks than are taken at once", { rounds: 2000, keys: 20, maxLength: 600_000 }],
] as const)
  test(`four threads that store, find, replace, remove and evict ${what} read no torn one`, async () => {
    const memory = createCacheMemory({ maxBytes: MAX_BYTES, workers: 4 });
    const maintenance = maintain(memory);
    const results = await Promise.all(
      Array.from({ length: 4 }, (_, worker) => start({ ...load, memory, worker }).result),
    );
    for (const { faults, hits, stored } of results) {
      expect(faults).toEqual([]);
      expect(hits).toBeGreaterThan(load.rounds / 40);
      expect(stored).toBeGreaterThan(load.rounds / 40);
    }
    expect(maintenance.counts().evictions).toBeGreaterThan(100);
    expect(maintenance.counts().bytes).toBeLessThanOrEqual(MAX_BYTES);
    await tidy(maintenance, 4);
    checkCache(memory);
  });

test("no response is refused because four threads store at the same time", async () => {
  const memory = createCacheMemory({ maxBytes: 67_108_864, workers: 4 });
  const maintenance = maintain(memory);
  const load = { memory, rounds: 5000, keys: 1, maxLength: 0, isFresh: true };
  const all = Array.from({ length: 4 }, (_, worker) => start({ ...load, worker }).result);
  const stored = (await Promise.all(all)).reduce((sum, result) => sum + result.stored, 0);
  expect(stored).toBe(20_000);
  expect(maintenance.counts().refused).toBe(0);
});

/** Ends a thread that has come to the step for the `count`th time; resolves when it has ended. */
async function endAt(step: string, count: number, task: Omit<CacheTask, "stop">): Promise<void> {
  const said = new SharedArrayBuffer(4);
  const { thread } = start({ ...task, stop: { step, count, said } });
  const { async: isAsync, value } = Atomics.waitAsync(new Int32Array(said), 0, 0, 20_000);
  expect(isAsync ? await value : value).not.toBe("timed-out");
  const ended = new Promise((resolve) => thread.addEventListener("close", resolve));
  thread.terminate();
  await ended;
}

const steps = [
  ...["locked", "taken", "allocated", "half-written", "written", "publish", "linking", "indexed"],
  ...["linked", "readable", "hidden", "unindexed", "unqueued", "freed", "noted"],
];

for (const step of steps)
  test(`a thread that ends at the step "${step}" harms no other entry`, async () => {
    const memory = createCacheMemory({ maxBytes: 1_048_576, workers: 2 });
    const maintenance = maintain(memory);
    const cache = openCache(memory, { worker: 1 });
    for (let count = 1; count <= 2048; count *= 8) {
      const before = Array.from({ length: 100 }, (_, at) => `before-${count}-${at}`);
      for (const key of before) expect(cache.put(recordOf(cache, key))).toBe(true);
      const task = { memory, worker: 0, rounds: 1_000_000, keys: 50, maxLength: 20_000 };
      await endAt(step, count, task);
      await maintenance.forgetWorker(0);
      const keys = new Set(checkCache(memory));
      for (const key of keys) expect(faultOf(cache, key)).toBeNull();
      // The other thread goes on at once.
      expect(cache.put(recordOf(cache, "after"))).toBe(true);
      expect(has(cache, "after")).toBe(true);
      expect(before.filter((key) => keys.has(key)).length).toBeGreaterThan(90);
    }
  });

test("while a thread that has ended holds the lock, lookups go on, nothing is stored, and an invalidation drops everything", async () => {
  const memory = createCacheMemory({ maxBytes: 1_048_576, workers: 2 });
  const maintenance = maintain(memory);
  const cache = openCache(memory, { worker: 1 });
  for (const key of ["a", "b", "c"]) expect(cache.put(recordOf(cache, key))).toBe(true);
  const removed = cache.find("c", () => true)!;
  const task = { memory, worker: 0, rounds: 1_000_000, keys: 50, maxLength: 0 };
  await endAt("locked", 1, task);
  expect(has(cache, "a")).toBe(true);
  expect(cache.put(recordOf(cache, "d"))).toBe(false);
  expect(cache.remove(removed)).toBe(true);
  expect(has(cache, "c")).toBe(false);
  const early = recordOf(cache, "e");
  expect(cache.invalidate("h/b")).toBe(0);
  expect(["a", "b"].map((key) => has(cache, key))).toEqual([false, false]);
  const purged = maintenance.purge({ by: "key", value: "h/a" }, { soft: false });
  await maintenance.forgetWorker(0);
  await purged;
  expect(cache.put(early)).toBe(false);
  expect(cache.put(recordOf(cache, "d"))).toBe(true);
  await maintenance.purge({ by: "tag", value: "none" }, { soft: false });
  expect(checkCache(memory)).toEqual(["d"]);
});

test("purges and invalidations while three threads store: nothing from before is found after the reply", async () => {
  const memory = createCacheMemory({ maxBytes: 4_194_304, workers: 4 });
  const maintenance = maintain(memory);
  const cache = openCache(memory, { worker: 3 });
  const task = { memory, rounds: 40_000, keys: 300, maxLength: 3000 };
  let isRunning = true;
  const all = Promise.all(
    Array.from({ length: 3 }, (_, worker) => start({ ...task, worker }).result),
  ).finally(() => {
    isRunning = false;
  });
  let rounds = 0;
  for (; isRunning; rounds++) {
    const key = `key-${rounds % 300}`;
    // The others store no such variant.
    cache.put(recordOf(cache, key, { variant: "stale", tags: [`t${rounds}`] }));
    const early = recordOf(cache, key, { variant: "stale", tags: [`t${rounds}`] });
    if (rounds % 4 === 0) cache.invalidate(`h/${key}`);
    else if (rounds % 4 === 1)
      await maintenance.purge({ by: "key", value: `h/${key}` }, { soft: false });
    else if (rounds % 4 === 2)
      await maintenance.purge({ by: "tag", value: `t${rounds}` }, { soft: false });
    else await maintenance.purge({ by: "prefix", value: `h/${key}` }, { soft: false });
    expect(cache.find(key, ({ variant }) => variant === "stale")).toBeNull();
    expect(cache.put(early)).toBe(false);
    await Bun.sleep(0);
  }
  for (const { faults } of await all) expect(faults).toEqual([]);
  expect(rounds).toBeGreaterThan(20);
  await tidy(maintenance, 4);
  checkCache(memory);
});
