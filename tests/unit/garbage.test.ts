// Garbage is collected when there is much of it, with pauses that bound its CPU time, and its memory is freed.
import { edenGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { GarbageWatch, REQUESTS_PER_COLLECTION, RequestGarbage } from "../../src/garbage.ts";

const MB = 1_000_000;

/** A heap with `live` in use, whose collection takes `tookMs`. */
function fakeHeap(live: number, tookMs: number) {
  const heap = { bytes: live, buffers: 0, collections: 0, now: 0 };
  const collect = () => {
    heap.collections++;
    heap.now += tookMs;
    heap.bytes = live;
  };
  const [size, buffers] = [() => heap.bytes, () => heap.buffers];
  const watch = new GarbageWatch({ size, buffers, collect }, () => heap.now);
  return { heap, watch };
}

test("much garbage triggers a collection, a little does not", () => {
  const { heap, watch } = fakeHeap(20 * MB, 5);
  heap.now += 60_000;
  heap.bytes += 8 * MB;
  watch.check();
  expect(heap.collections).toBe(0);
  heap.bytes += MB;
  watch.check();
  expect(heap.collections).toBe(1);
  watch.check();
  expect(heap.collections).toBe(1);
});

test.each([
  [0, 100],
  [300, 25],
])(
  "of 400 MB with %p MB of buffers, %p MB are worth it: a quarter of the objects",
  (buffers, most) => {
    const { heap, watch } = fakeHeap(400 * MB, 10);
    heap.buffers = buffers * MB;
    heap.now += 60_000;
    heap.bytes += 10 * MB;
    watch.check();
    expect(heap.collections).toBe(1);
    heap.now += 60_000;
    heap.bytes += (most - 1) * MB;
    watch.check();
    expect(heap.collections).toBe(1);
    heap.bytes += 2 * MB;
    watch.check();
    expect(heap.collections).toBe(2);
  },
);

test.each([
  [2, 10_000],
  [15, 15_000],
  [500, 60_000],
])("after a collection of %p ms the next one waits %p ms", (tookMs, pauseMs) => {
  const { heap, watch } = fakeHeap(20 * MB, tookMs);
  heap.now += 60_000;
  heap.bytes += 50 * MB;
  watch.check();
  expect(heap.collections).toBe(1);
  heap.bytes += 50 * MB;
  heap.now += pauseMs - 1;
  watch.check();
  expect(heap.collections).toBe(1);
  heap.now += 1;
  watch.check();
  expect(heap.collections).toBe(2);
});

test("after a collection by the engine, growth counts from there", () => {
  const { heap, watch } = fakeHeap(60 * MB, 5);
  heap.now += 60_000;
  heap.bytes = 20 * MB;
  watch.check();
  heap.bytes = 30 * MB;
  watch.check();
  expect(heap.collections).toBe(1);
});

test("released old objects are freed, which a collection of new objects does not do", () => {
  // No other test creates them.
  const count = () => heapStats().objectTypeCounts["WeakSet"] ?? 0;
  const kept = Array.from({ length: 50_000 }, () => new WeakSet());
  Bun.gc(true);
  let time = 0;
  const watch = new GarbageWatch(undefined, () => time);
  expect(count()).toBeGreaterThanOrEqual(50_000);
  kept.length = 0;
  const grown = new Uint8Array(50_000_000);
  edenGC();
  expect(count()).toBeGreaterThan(40_000);
  time += 60_000;
  watch.check();
  expect(count()).toBeLessThan(1000);
  expect(grown.length).toBe(50_000_000);
});

test("new objects are collected once for 1500 requests, after the turn of the event loop", async () => {
  let collections = 0;
  const garbage = new RequestGarbage(() => collections++);
  const ended = (requests: number) => {
    for (let request = 0; request < requests; request++)
      if (++garbage.requests >= REQUESTS_PER_COLLECTION) garbage.collect();
  };
  ended(1499);
  await new Promise(setImmediate);
  expect(collections).toBe(0);
  ended(3001);
  expect(collections).toBe(0);
  await new Promise(setImmediate);
  expect(collections).toBe(3);
});
