// Counts by key: windows, token buckets and concurrency slots, from one thread and from several.
import { afterEach, describe, expect, test } from "bun:test";
import { CounterSlots } from "../../../src/shared-memory/counter-slots.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import type { CountingResult, CountingTask } from "./counter-table-thread.ts";

const threads: Worker[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
});

function startThread(task: CountingTask): Promise<CountingResult> {
  const thread = new Worker(new URL("./counter-table-thread.ts", import.meta.url));
  threads.push(thread);
  const { promise, resolve, reject } = Promise.withResolvers<CountingResult>();
  thread.addEventListener("message", ({ data }: MessageEvent<CountingResult>) => resolve(data));
  thread.addEventListener("error", (event) => reject(new Error(event.message)));
  thread.postMessage(task);
  return promise;
}

/** A table with a simulated clock, which begins where windows of any length begin. */
function world({ keys = 1000, workers = 1, now = 3_600_000_000 } = {}) {
  const time = { now };
  const options = { now: () => time.now };
  const table = CounterTable.create({ keys, workers }, options);
  return { time, options, table, counters: table.forInstance(0, "a") };
}

test("several threads count exactly and never exceed tokens or slots", async () => {
  const [workers, rounds, keys, places] = [3, 60_000, 7, 2];
  const { table, options } = world({ workers, now: 1_000_000 });
  const start = new SharedArrayBuffer(4 * (1 + keys));
  const task = { buffer: table.buffer, workers, rounds, keys, places, start };
  const results = await Promise.all(
    Array.from({ length: workers }, (_, worker) => startThread({ ...task, worker })),
  );
  const counters = new CounterTable(table.buffer, options).forInstance(0, "a");
  let counted = 0;
  for (let key = 0; key < keys; key++) {
    counted += counters.add(`key ${key}`, 0, 60_000).current;
    expect(results.reduce((sum, { taken }) => sum + (taken[key] ?? 0), 0)).toBe(1000);
    const left = results.reduce((sum, { inside }) => sum + (inside[key] ?? 0), 0);
    expect(counters.inside(`key ${key}`)).toBe(left);
  }
  expect(counted).toBe(workers * rounds);
  expect(results.map(({ tooMany }) => tooMany)).toEqual(results.map(() => 0));
  for (let worker = 0; worker < workers; worker++) table.forgetWorker(worker);
  for (let key = 0; key < keys; key++) expect(counters.inside(`key ${key}`)).toBe(0);
});

describe("a stock", () => {
  const until = (time: { now: number }) => time.now + 1000;

  test("holds what was stored, until it expires", () => {
    const { time, counters } = world();
    expect(counters.spend("k", 1)).toBeNull();
    counters.store("k", { units: 3, rest: 1e9, untilMs: until(time) });
    expect(counters.spend("k", 2)).toEqual({ units: 1, rest: 1e9, untilMs: until(time) });
    expect(counters.spend("k", 2)).toBeNull();
    expect(counters.spend("k", 0)?.units).toBe(1);
    time.now += 999;
    expect(counters.spend("k", 0)?.units).toBe(1);
    time.now += 1;
    expect(counters.spend("k", 1)).toBeNull();
    counters.store("k", { units: 2, rest: 0, untilMs: until(time) });
    expect(counters.spend("k", 0)?.units).toBe(2);
  });

  test("grows, and keeps the earlier time unless it is empty", () => {
    const { time, counters } = world();
    const early = until(time);
    counters.store("k", { units: 1, rest: 9, untilMs: early });
    counters.store("k", { units: 4, rest: 5, untilMs: early + 500 });
    expect(counters.spend("k", 5)).toEqual({ units: 0, rest: 5, untilMs: early });
    counters.store("k", { units: 1, rest: 5, untilMs: early + 500 });
    expect(counters.spend("k", 0)?.untilMs).toBe(early + 500);
  });

  test("of 4 million units is full, and one for all workers of an instance", () => {
    const { time, table, counters } = world({ workers: 2 });
    counters.store("k", { units: 4_000_000, rest: 1e9, untilMs: until(time) });
    counters.store("k", { units: 1_000_000, rest: 1e9, untilMs: until(time) });
    const most = 2 ** 22 - 1;
    expect(table.forInstance(1, "a").spend("k", 0)).toMatchObject({ units: most, rest: 1e9 });
    expect(table.forInstance(0, "b").spend("k", 0)).toBeNull();
  });
});

describe("a window", () => {
  test("begins at a multiple of its length and remembers the one before", () => {
    const { time, counters } = world();
    time.now += 250;
    expect(counters.add("k", 1, 1000)).toEqual({ current: 1, previous: 0, elapsedMs: 250 });
    expect(counters.add("k", 2, 1000)).toEqual({ current: 3, previous: 0, elapsedMs: 250 });
    time.now += 800;
    expect(counters.add("k", 1, 1000)).toEqual({ current: 1, previous: 3, elapsedMs: 50 });
    time.now += 1000;
    expect(counters.add("k", 0, 1000)).toEqual({ current: 0, previous: 1, elapsedMs: 50 });
    time.now += 1000;
    expect(counters.add("k", 0, 1000)).toEqual({ current: 0, previous: 0, elapsedMs: 50 });
    expect(counters.add("k", 1, 1000)).toEqual({ current: 1, previous: 0, elapsedMs: 50 });
  });

  test("is the same for a thread that looked at the time a moment too early", () => {
    const { time, counters } = world();
    counters.add("k", 1, 1000);
    time.now -= 1;
    expect(counters.add("k", 1, 1000)).toEqual({ current: 2, previous: 0, elapsedMs: 0 });
    time.now -= 3000;
    expect(counters.add("k", 1, 1000)).toEqual({ current: 1, previous: 0, elapsedMs: 999 });
  });

  test.each([
    ["key", (w: ReturnType<typeof world>) => w.counters.add("other", 0, 1000)],
    ["length", (w: ReturnType<typeof world>) => w.counters.add("k", 0, 2000)],
    ["instance", (w: ReturnType<typeof world>) => w.table.forInstance(0, "b").add("k", 0, 1000)],
  ])("of another %s is another", (_, read) => {
    const it = world();
    it.counters.add("k", 5, 1000);
    expect(read(it).current).toBe(0);
  });

  test("is not created by reading, and never counts below zero", () => {
    const { counters } = world();
    expect(counters.add("k", 0, 1000).current).toBe(0);
    counters.add("k", 2, 1000);
    expect(counters.add("k", -3, 1000).current).toBe(0);
  });

  test("counts amounts beyond 32-bit integers", () => {
    const { counters } = world();
    counters.add("k", 5e9, 1000);
    expect(counters.add("k", 5e9, 1000).current).toBe(1e10);
  });

  test("is the same for all workers", () => {
    const { table, options } = world({ workers: 2 });
    table.forInstance(0, "a").add("k", 1, 1000);
    const other = new CounterTable(table.buffer, options).forInstance(1, "a");
    expect(other.add("k", 1, 1000).current).toBe(2);
  });
});

describe("a request for quota of a window", () => {
  const fixed = { cost: 1, windowMs: 1000, max: 2, isSliding: false };
  const sliding = { ...fixed, isSliding: true };

  test("is admitted within the limit, and not counted when it is rejected", () => {
    const { counters } = world();
    expect(counters.admit("k", { ...fixed, cost: 2 })).toMatchObject({
      isAdmitted: true,
      current: 2,
    });
    expect(counters.admit("k", fixed)).toMatchObject({ isAdmitted: false, current: 2 });
    expect(counters.admit("k", { ...fixed, cost: 0 })).toMatchObject({ isAdmitted: true });
    expect(counters.add("k", 0, 1000).current).toBe(2);
  });

  test("on a sliding window counts the remaining share of the previous window", () => {
    const { time, counters } = world();
    counters.admit("k", { ...sliding, cost: 2 });
    time.now += 1499;
    expect(counters.admit("k", sliding).isAdmitted).toBe(false);
    time.now += 1;
    expect(counters.admit("k", sliding).isAdmitted).toBe(true);
    expect(counters.admit("k", sliding).isAdmitted).toBe(false);
  });

  test("is refunded to its own window, even after that has ended", () => {
    const { time, counters } = world();
    counters.admit("k", fixed);
    const late = counters.admit("k", fixed);
    counters.revoke("k", late, fixed);
    expect(counters.add("k", 0, 1000).current).toBe(1);
    time.now += 1000;
    const next = counters.admit("k", fixed);
    counters.revoke("k", late, fixed);
    expect(counters.add("k", 0, 1000)).toEqual({ current: 1, previous: 0, elapsedMs: 0 });
    time.now += 5000;
    counters.admit("k", fixed);
    counters.revoke("k", next, fixed);
    counters.revoke("none", next, fixed);
    expect(counters.add("k", 0, 1000).current).toBe(1);
  });
});

describe("a value", () => {
  test("is replaced by compare-and-swap only, and expires", () => {
    const { time, counters } = world();
    const keepMs = 1000;
    expect(counters.value("k")).toBe(0);
    expect(counters.replace("k", { expected: 1, next: 2, keepMs })).toBe(false);
    expect(counters.replace("k", { expected: 0, next: -7.5, keepMs })).toBe(true);
    expect(counters.replace("k", { expected: 0, next: 3, keepMs })).toBe(false);
    expect(counters.value("k")).toBe(-7.5);
    expect(counters.add("k", 0, 1000).current).toBe(0);
    time.now += 2000;
    expect(counters.value("k")).toBe(0);
    expect(counters.replace("k", { expected: 0, next: 1e15, keepMs })).toBe(true);
    expect(counters.value("k")).toBe(1e15);
  });
});

describe("a bucket", () => {
  const bucket = { capacity: 3, perSecond: 2, cost: 1 };

  test("begins full, says how long to wait, and is full again after a while", () => {
    const { time, counters } = world();
    expect(counters.take("k", bucket)).toEqual({ remaining: 2, wait: 0 });
    expect(counters.take("k", { ...bucket, cost: 2 })).toEqual({ remaining: 0, wait: 0 });
    expect(counters.take("k", bucket)).toEqual({ remaining: 0, wait: 500 });
    time.now += 400;
    expect(counters.take("k", bucket).wait).toBe(100);
    time.now += 100;
    expect(counters.take("k", bucket)).toEqual({ remaining: 0, wait: 0 });
    time.now += 60_000;
    expect(counters.take("k", { ...bucket, cost: 0 })).toEqual({ remaining: 3, wait: 0 });
  });

  test("has a token after the wait that it reported, at any rate", () => {
    const { time, counters } = world();
    const odd = { capacity: 1, perSecond: 0.7, cost: 1 };
    counters.take("k", odd);
    for (let round = 0; round < 100; round++) {
      time.now += counters.take("k", odd).wait;
      expect(counters.take("k", odd).wait).toBe(0);
    }
  });

  test("accepts refunds by a negative cost, up to its capacity", () => {
    const { counters } = world();
    counters.take("k", { ...bucket, cost: 2 });
    counters.take("k", { ...bucket, cost: -1 });
    expect(counters.take("k", { ...bucket, cost: 0 }).remaining).toBe(2);
    counters.take("k", { ...bucket, cost: -5 });
    expect(counters.take("k", { ...bucket, cost: 0 }).remaining).toBe(3);
  });

  test("never admits more than its capacity, and nothing more at a rate of 0", () => {
    const { counters } = world();
    expect(counters.take("k", { ...bucket, cost: 4 })).toEqual({ remaining: 3, wait: Infinity });
    const dry = { capacity: 1, perSecond: 0, cost: 1 };
    expect(counters.take("dry", dry).wait).toBe(0);
    expect(counters.take("dry", dry).wait).toBe(Infinity);
  });

  test("gains nothing from a clock that is set back, and continues from there", () => {
    const { time, counters } = world();
    counters.take("k", { ...bucket, cost: 3 });
    time.now -= 3_600_000;
    expect(counters.take("k", bucket).wait).toBe(500);
    time.now += 500;
    expect(counters.take("k", bucket).wait).toBe(0);
  });
});

describe("concurrency slots", () => {
  test("are acquired until there are none, and can be acquired again", () => {
    const { counters } = world();
    expect([counters.enter("k", 2), counters.enter("k", 2), counters.enter("k", 2)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(counters.inside("k")).toBe(2);
    counters.leave("k");
    expect(counters.enter("k", 2)).toBe(true);
    counters.leave("k");
    counters.leave("k");
    counters.leave("k");
    expect(counters.inside("k")).toBe(0);
  });

  test("of a worker that died are free again, those of others stay in use", () => {
    const { table } = world({ workers: 2 });
    const [dead, alive] = [table.forInstance(0, "a"), table.forInstance(1, "a")];
    dead.enter("both", 10);
    dead.enter("both", 10);
    alive.enter("both", 10);
    dead.enter("dead", 1);
    alive.enter("alive", 1);
    table.forgetWorker(0);
    expect([alive.inside("both"), alive.inside("dead"), alive.inside("alive")]).toEqual([1, 0, 1]);
    expect(alive.enter("dead", 1)).toBe(true);
    expect(alive.enter("alive", 1)).toBe(false);
  });

  test("are counted again when the worker died between two writes", () => {
    const { table, options } = world({ workers: 2 });
    table.forInstance(1, "a").enter("k", 10);
    const slots = new CounterSlots(table.buffer, options.now);
    const all = Array.from({ length: slots.count }, (_, slot) => slot);
    const slot = all.find((each) => slots.first(each) === 1)!;
    // It had entered, and had not updated the total.
    slots.shares[slot] = 1;
    table.forgetWorker(0);
    expect(table.forInstance(1, "a").inside("k")).toBe(1);
  });

  test("stay in use however many other keys follow, and are separate from windows", () => {
    const { counters } = world({ keys: 64 });
    counters.enter("k", 1);
    for (let key = 0; key < 10_000; key++) counters.add(`other ${key}`, 1, 1000);
    expect(counters.inside("k")).toBe(1);
    for (let key = 0; key < 10_000; key++) counters.enter(`other ${key}`, 1);
    expect(counters.enter("k", 1)).toBe(false);
    // The table is full: entries are admitted and not counted.
    expect(counters.enter("one more", 1)).toBe(true);
    expect(counters.inside("one more")).toBe(0);
    expect(counters.add("one more", 1, 1000).current).toBe(1);
    expect(counters.take("one more", { capacity: 2, perSecond: 1, cost: 1 }).wait).toBe(0);
  });
});

describe("memory", () => {
  test.each([2, 8])(
    "of %d workers holds 100,000 keys without eviction, in at most 100 bytes each",
    (workers) => {
      const table = CounterTable.create({ workers });
      const counters = table.forInstance(0, "a");
      const keys = Array.from({ length: 100_000 }, (_, key) => `203.0.${key}`);
      for (const key of keys) counters.add(key, 1, 3_600_000_000);
      expect(keys.every((key) => counters.add(key, 0, 3_600_000_000).current === 1)).toBe(true);
      expect(table.buffer.byteLength / keys.length).toBeLessThanOrEqual(100);
    },
  );

  test("that is full evicts the key idle longest", () => {
    const { time, counters } = world({ keys: 40 });
    counters.add("kept", 1, 3_600_000);
    counters.add("idle", 1, 3_600_000);
    for (let key = 0; key < 1000; key++) {
      time.now += 100;
      counters.add("kept", 1, 3_600_000);
      counters.add(`other ${key}`, 1, 3_600_000);
    }
    expect(counters.add("kept", 0, 3_600_000).current).toBe(1001);
    expect(counters.add("idle", 0, 3_600_000).current).toBe(0);
    expect(counters.add("other 999", 0, 3_600_000).current).toBe(1);
  });

  test("of expired keys is reused first", () => {
    const { time, counters } = world({ keys: 40 });
    counters.add("kept", 1, 3_600_000);
    for (let round = 0; round < 100; round++) {
      time.now += 3000;
      for (let key = 0; key < 30; key++) counters.add(`${round} ${key}`, 1, 1000);
    }
    expect(counters.add("kept", 0, 3_600_000).current).toBe(1);
  });
});

describe("a snapshot", () => {
  test("restores the persistent keys of an instance after a restart", () => {
    const { time, table, options } = world({ workers: 1 });
    const kept = table.forInstance(0, "a", { persist: true });
    kept.add("k", 5, 60_000);
    kept.add("short", 5, 1000);
    kept.take("k", { capacity: 10, perSecond: 0.1, cost: 4 });
    kept.enter("k", 1);
    table.forInstance(0, "b").add("k", 5, 60_000);
    const bytes = table.snapshot()!;

    time.now += 10_000;
    const next = CounterTable.create({ keys: 500, workers: 2 }, options);
    expect(next.restore(bytes)).toBe(2);
    const counters = next.forInstance(1, "a", { persist: true });
    expect(counters.add("k", 1, 60_000)).toEqual({ current: 6, previous: 0, elapsedMs: 10_000 });
    expect(counters.take("k", { capacity: 10, perSecond: 0.1, cost: 0 }).remaining).toBeCloseTo(7);
    expect(counters.inside("k")).toBe(0);
    expect(next.forInstance(1, "b").add("k", 0, 60_000).current).toBe(0);
    // The restored keys are persistent too.
    time.now += 50_000;
    const third = CounterTable.create({ workers: 1 }, options);
    third.restore(next.snapshot()!);
    expect(third.forInstance(0, "a").add("k", 0, 60_000).previous).toBe(6);
  });

  test("is empty when no instance is persistent", () => {
    const { table, counters } = world();
    counters.add("k", 1, 1000);
    expect(table.snapshot()).toBeNull();
  });

  test.each([
    ["nothing", new Uint8Array()],
    ["other bytes", new Uint8Array(64).fill(7)],
    ["too few bytes", world().table.snapshot() ?? new Uint8Array(25)],
  ])("that is %s is ignored", (_, bytes) => {
    const { table, counters } = world();
    expect(table.restore(bytes)).toBe(0);
    expect(counters.add("k", 1, 1000).current).toBe(1);
  });
});
