// Histograms of durations with one fixed layout, so that those of all threads and times can be added and subtracted; knows no request.

/** Renard series R20: twenty per decade, a ratio of about 1.12; contains 1, 2, 2.5, 4 and 5, common bucket bounds. */
const DECADE = [
  1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9,
];
/** From 10 microseconds to 10,000 seconds. */
const DECADES = 9;

/** Inclusive upper bounds of the buckets in microseconds; one more bucket holds longer durations. */
export const bounds: Float64Array = Float64Array.from([
  ...Array.from({ length: DECADES }, (_, decade) =>
    // Multiplied as integers, so that a bound is the same float as its decimal literal.
    DECADE.map((step) => (Math.round(step * 100) * 10 ** decade) / 10),
  ).flat(),
  10 ** (DECADES + 1),
]);

export const BUCKETS: number = bounds.length + 1;

/** Cells of a histogram: the sum in microseconds, then the buckets. */
export const HISTOGRAM_CELLS: number = 1 + BUCKETS;

/** Largest relative error of a percentile from 10 microseconds to 10,000 seconds. */
export const RELATIVE_ERROR = 0.062;

/** First bucket of every sixteenth of an octave: finds a bucket without a logarithm. */
const starts = Uint8Array.from({ length: 32 * 16 }, (_, index) => {
  const octave = index >> 4;
  const least = octave < 4 ? index & 15 : 2 ** octave * (1 + (index & 15) / 16);
  return firstAtLeast(least);
});

function firstAtLeast(value: number): number {
  const found = bounds.findIndex((bound) => value <= bound);
  return found < 0 ? bounds.length : found;
}

/**
 * Adds a duration in microseconds to the histogram whose cells begin at `at`: to the first bucket whose bound is not below it.
 * Only one thread may write there.
 */
export function record(cells: Float64Array, at: number, us: number): void {
  let bucket = 0;
  if (us >= 2 ** 31) bucket = us <= 1e10 ? firstAtLeast(us) : bounds.length;
  else if (us > 10) {
    const octave = 31 - Math.clz32(us);
    const part = octave < 4 ? us | 0 : (us / 2 ** (octave - 4)) & 15;
    bucket = starts[(octave << 4) | part] ?? 0;
    while (us > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket++;
  }
  const cell = at + 1 + bucket;
  cells[at] = (cells[at] ?? 0) + us;
  cells[cell] = (cells[cell] ?? 0) + 1;
}

/** A histogram at one moment. */
export interface Histogram {
  readonly count: number;
  /** Microseconds. */
  readonly sum: number;
  /** Count of each bucket, see `bounds`. */
  readonly buckets: Float64Array;
}

export function emptyHistogram(): Histogram {
  return { count: 0, sum: 0, buckets: new Float64Array(BUCKETS) };
}

/** Reads the histogram whose cells begin at `at`. */
export function snapshot(cells: Float64Array, at: number): Histogram {
  const buckets = cells.slice(at + 1, at + 1 + BUCKETS);
  return { count: total(buckets), sum: cells[at] ?? 0, buckets };
}

/** The sum of two histograms. */
export function merge(one: Histogram, other: Histogram): Histogram {
  const buckets = one.buckets.map((count, index) => count + (other.buckets[index] ?? 0));
  return { count: total(buckets), sum: one.sum + other.sum, buckets };
}

/** What was recorded since `before`. */
export function diff(after: Histogram, before: Histogram): Histogram {
  const buckets = after.buckets.map((count, index) =>
    Math.max(0, count - (before.buckets[index] ?? 0)),
  );
  return { count: total(buckets), sum: Math.max(0, after.sum - before.sum), buckets };
}

function total(buckets: Float64Array): number {
  let sum = 0;
  // Not `for … of`, which allocates an object for each bucket until the loop is hot.
  for (let bucket = 0; bucket < buckets.length; bucket++) sum += buckets[bucket] ?? 0;
  return sum;
}

/**
 * A percentile in microseconds: 0.95 for the 95th. It lies in the bucket of the
 * true value, at its geometric mean. 0 without records.
 */
export function percentile({ count, buckets }: Histogram, share: number): number {
  if (count === 0) return 0;
  const rank = Math.max(1, Math.ceil(share * count));
  let seen = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    seen += buckets[bucket] ?? 0;
    if (seen >= rank) return middleOf(bucket);
  }
  return middleOf(BUCKETS - 1);
}

function middleOf(bucket: number): number {
  const upper = bounds[bucket];
  const lower = bounds[bucket - 1];
  if (lower === undefined) return (upper ?? 0) / 2;
  return upper === undefined ? lower : Math.sqrt(lower * upper);
}

/** The count up to `us`, which must be one of the bounds. */
export function countUpTo({ buckets }: Histogram, us: number): number {
  const last = firstAtLeast(us);
  let count = 0;
  for (let bucket = 0; bucket <= last; bucket++) count += buckets[bucket] ?? 0;
  return count;
}
