// Histograms: the bucket of a duration, and the error of percentiles.
import { describe, expect, test } from "bun:test";
import {
  BUCKETS,
  bounds,
  countUpTo,
  diff,
  emptyHistogram,
  HISTOGRAM_CELLS,
  merge,
  percentile,
  RELATIVE_ERROR,
  record,
  snapshot,
} from "../../../src/shared-memory/histogram.ts";
import { Random } from "../../support/random.ts";

const slowBucketOf = (us: number) => {
  const found = bounds.findIndex((bound) => us <= bound);
  return found < 0 ? BUCKETS - 1 : found;
};

function histogramOf(values: readonly number[]) {
  const cells = new Float64Array(HISTOGRAM_CELLS + 7);
  for (const value of values) record(cells, 7, value);
  return snapshot(cells, 7);
}

const bucketOf = (us: number) => histogramOf([us]).buckets.indexOf(1);

/** From far below the first bound to far above the last one, all magnitudes alike. */
const anyDuration = (random: Random) => 10 ** (random.next() * 13 - 1);

describe("the bucket of a duration", () => {
  test("is the first whose bound is not below it, for every bound and what is next to it", () => {
    for (const bound of bounds)
      for (const value of [bound, bound * 0.999999, bound * 1.000001, Math.floor(bound)])
        expect([value, bucketOf(value)]).toEqual([value, slowBucketOf(value)]);
  });

  test("is the one that a search finds, for durations of all magnitudes", () => {
    const random = new Random(7);
    for (let round = 0; round < 100_000; round++) {
      const value = anyDuration(random);
      if (bucketOf(value) !== slowBucketOf(value)) throw new Error(`differs for ${value}`);
    }
  });

  test.each([
    [0, 0],
    [-5, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, BUCKETS - 1],
  ])("of %p is %p, even if it is not a valid duration", (value, bucket) => {
    expect(bucketOf(value)).toBe(bucket);
  });

  test("bounds ascend and include the common ones exactly", () => {
    for (let index = 1; index < bounds.length; index++)
      expect(bounds[index] as number).toBeGreaterThan(bounds[index - 1] as number);
    for (const asked of [100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 1_000_000, 10_000_000])
      expect(bounds).toContain(asked);
  });
});

describe("percentiles", () => {
  test.each([1, 2, 3, 4, 5])("are within the error of their bucket, round %p", (seed) => {
    const random = new Random(seed);
    const size = 1 + Math.floor(random.next() * 3000);
    const values = Array.from({ length: size }, () => 10 ** (1 + random.next() * 8.9));
    const histogram = histogramOf(values);
    const sorted = values.toSorted((a, b) => a - b);
    for (const share of [0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1]) {
      const exact = sorted[Math.max(1, Math.ceil(share * size)) - 1] as number;
      const off = Math.abs(percentile(histogram, share) - exact) / exact;
      expect(off).toBeLessThanOrEqual(RELATIVE_ERROR);
    }
  });

  test("of nothing are 0", () => {
    expect(percentile(emptyHistogram(), 0.99)).toBe(0);
  });
});

describe("histograms", () => {
  test("of parts merge into the histogram of all; subtracting one gives the other part", () => {
    const random = new Random(11);
    const [one, other] = [0, 1].map(() =>
      Array.from({ length: 500 }, () => Math.floor(anyDuration(random))),
    ) as [number[], number[]];
    const both = histogramOf([...one, ...other]);
    const merged = merge(histogramOf(one), histogramOf(other));
    expect(merged.buckets).toEqual(both.buckets);
    expect(merged.count).toBe(1000);
    expect(diff(merged, histogramOf(one)).buckets).toEqual(histogramOf(other).buckets);
    expect(diff(merged, histogramOf(one)).count).toBe(500);
  });

  test("count durations up to a bound exactly", () => {
    const histogram = histogramOf([50, 100, 100.5, 2500, 1e9]);
    expect([100, 2500, 1e10].map((bound) => countUpTo(histogram, bound))).toEqual([2, 4, 5]);
  });

  test("do not change the cells around them", () => {
    const cells = new Float64Array(HISTOGRAM_CELLS + 2).fill(0);
    record(cells, 1, 1e15);
    record(cells, 1, 0);
    expect([cells[0], cells.at(-1)]).toEqual([0, 0]);
  });
});
