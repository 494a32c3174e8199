// Counts of the traffic: exact over threads and their restarts, bounded in number, and never mixed between keys.
import { afterEach, describe, expect, test } from "bun:test";
import { percentile, RELATIVE_ERROR } from "../../../src/shared-memory/histogram.ts";
import { RequestRing } from "../../../src/shared-memory/request-ring.ts";
import {
  NO_ROUTE_ROW,
  OTHER_ROW,
  TrafficMetrics,
} from "../../../src/shared-memory/traffic-metrics.ts";
import { ROW_CELLS } from "../../../src/shared-memory/traffic-cells.ts";
import type { CountingTask } from "./counting-thread.ts";

const threads: Worker[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
});

function count(task: CountingTask): Promise<unknown> {
  const thread = new Worker(new URL("./counting-thread.ts", import.meta.url));
  threads.push(thread);
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  thread.addEventListener("message", resolve);
  thread.addEventListener("error", (event) => reject(new Error(event.message)));
  thread.postMessage(task);
  return promise;
}

const request = {
  status: 200,
  totalUs: 100,
  upstreamUs: 60,
  bytesIn: 3,
  bytesOut: 5,
  retries: 1,
  isResponseAborted: false,
};

test("the sums over 4 threads, and over the restart of one, are exact", async () => {
  const [workers, requests] = [4, 30_000];
  const keys = ["route a", "route b", "route c"];
  const metrics = TrafficMetrics.create(workers);
  const ring = RequestRing.create(100);
  const rows = keys.map((key) => metrics.claim(key));
  const taskOf = (worker: number) => ({
    traffic: metrics.memoryFor(worker),
    ring: ring.buffer,
    keys,
    requests,
    worker,
  });
  await Promise.all([0, 1, 2, 3].map((worker) => count(taskOf(worker))));
  // A replacement of the second thread continues its counts.
  await count(taskOf(1));
  const all = 5 * requests;
  const read = rows.map((row) => metrics.read(row));
  const sum = (of: (row: (typeof read)[number]) => number) =>
    read.reduce((total, row) => total + of(row), 0);
  expect(sum(({ counters }) => counters.ended)).toBe(all);
  expect(sum(({ codes }) => codes.get("200") ?? 0)).toBe(all * 0.9);
  expect(sum(({ codes }) => codes.get("503") ?? 0)).toBe(all * 0.1);
  expect(sum(({ counters }) => counters.bytes_in)).toBe(all);
  expect(sum(({ counters }) => counters.bytes_out)).toBe(2 * all);
  expect(sum(({ counters }) => counters.retries)).toBe(all);
  expect(sum(({ histograms }) => histograms.total.count)).toBe(all);
  expect(sum(({ histograms }) => histograms.upstream.count)).toBe(all);
  expect(ring.next).toBe(all);
  const median = percentile(read[0]!.histograms.total, 0.5);
  expect(Math.abs(median - 600) / 600).toBeLessThan(2 * RELATIVE_ERROR);
});

describe("rows", () => {
  test("are found again from another view, and not for another key", () => {
    const metrics = TrafficMetrics.create(1);
    const row = metrics.claim("a");
    expect(metrics.claim("a")).toBe(row);
    expect(new TrafficMetrics(metrics.memoryFor(0)).seriesOf("a").row).toBe(row);
    expect(metrics.seriesOf("b").row).toBe(OTHER_ROW);
    expect(metrics.noRoute.row).toBe(NO_ROUTE_ROW);
  });

  test("are bounded: all further keys share one", () => {
    const metrics = TrafficMetrics.create(1, { capacity: 3 });
    const rows = ["a", "b", "c", "d", "e"].map((key) => metrics.claim(key));
    expect(new Set(rows.slice(0, 3)).size).toBe(3);
    expect(rows.slice(3)).toEqual([OTHER_ROW, OTHER_ROW]);
    const writer = metrics.writer(0);
    for (const key of ["d", "e"]) writer.ended(metrics.seriesOf(key), request);
    expect(metrics.read(OTHER_ROW).counters.ended).toBe(2);
    metrics.release("a");
    expect(metrics.claim("d")).not.toBe(OTHER_ROW);
  });

  test("that were released start over, and handles on them do not count for their successors", () => {
    const metrics = TrafficMetrics.create(2, { capacity: 1 });
    const writer = metrics.writer(1);
    metrics.claim("a");
    const held = metrics.seriesOf("a");
    writer.ended(held, request);
    expect(metrics.read(held.row).counters.ended).toBe(1);
    metrics.release("a");
    // One of its keys maps to the same row.
    let row = OTHER_ROW;
    for (let key = 0; row !== held.row; key++) {
      metrics.release(`key ${key - 1}`);
      row = metrics.claim(`key ${key}`);
    }
    expect(metrics.read(row).counters.ended).toBe(0);
    writer.ended(held, request);
    expect(metrics.read(row).counters.ended).toBe(0);
    expect(metrics.read(OTHER_ROW).counters.ended).toBe(1);
  });

  test("can be claimed and released without end, and none is lost", () => {
    const metrics = TrafficMetrics.create(1, { capacity: 20 });
    for (let round = 0; round < 2000; round++) {
      expect(metrics.claim(`key ${round}`)).not.toBe(OTHER_ROW);
      if (round >= 19) metrics.release(`key ${round - 19}`);
    }
    expect(metrics.inUse).toBe(19);
    expect(metrics.seriesOf("key 1990").row).not.toBe(OTHER_ROW);
    expect(metrics.seriesOf("key 1").row).toBe(OTHER_ROW);
  });

  test("that are claimed and released are always the same few, so that untouched memory stays untouched", () => {
    const metrics = TrafficMetrics.create(1);
    const writer = metrics.writer(0);
    for (let round = 0; round < 3000; round++) {
      metrics.claim(`key ${round}`);
      writer.ended(metrics.seriesOf(`key ${round}`), request);
      if (round >= 5) metrics.release(`key ${round - 5}`);
    }
    const cells = new Float64Array(metrics.memoryFor(0).cells[0]!);
    const ended = Array.from(
      { length: cells.length / ROW_CELLS },
      (_, row) => cells[row * ROW_CELLS],
    );
    expect(ended.filter((count) => count !== 0).length).toBe(6);
  });
});

test.each([
  [200, "200"],
  [404, "404"],
  [418, "4xx"],
  [599, "5xx"],
  [103, "1xx"],
  [0, "other"],
  [999, "other"],
  [-1, "other"],
  [70_000, "other"],
])("status %p is counted as %p", (status, code) => {
  const metrics = TrafficMetrics.create(1);
  metrics.writer(0).ended(metrics.noRoute, { ...request, status });
  expect([...metrics.read(NO_ROUTE_ROW).codes]).toEqual([[code, 1]]);
});

test("a WebSocket is counted, and its lifetime is not a request duration", () => {
  const metrics = TrafficMetrics.create(1);
  metrics.writer(0).ended(metrics.noRoute, { ...request, status: 101, totalUs: 3.6e9 });
  const { codes, histograms } = metrics.read(NO_ROUTE_ROW);
  expect(codes.get("101")).toBe(1);
  expect(histograms.total.count).toBe(0);
});
