// Request counters with durations over an interval: addition and serialization; knows no time and no object.
import { counters, type Counter, type TallyDocument } from "../../model/rollup.ts";
import { BUCKETS, diff, type Histogram, percentile } from "../../shared-memory/histogram.ts";
import type { TrafficSnapshot } from "../../shared-memory/traffic-metrics.ts";

/** Counters of an interval; durations in microseconds. */
export interface Tally extends Readonly<Record<Counter, number>> {
  readonly latency: Histogram;
}

const tallyOf = (count: (name: Counter) => number, latency: Histogram): Tally =>
  ({
    ...Object.fromEntries(counters.map((name) => [name, count(name)])),
    latency,
  }) as unknown as Tally;

/** The counters of a row since its start. */
export function tallyOfRow({ counters: counts, codes, histograms }: TrafficSnapshot): Tally {
  const ofClass = (digit: string) => {
    let sum = 0;
    for (const [code, count] of codes) if (code.startsWith(digit)) sum += count;
    return sum;
  };
  return tallyOf((name) => {
    if (name === "requests") return counts.ended;
    if (name === "errors") return ofClass("5");
    if (name === "cache_hits") return hitsOf(counts);
    if (name === "cache_lookups") return hitsOf(counts) + counts.cache_miss + counts.cache_expired;
    return name === "client_errors" ? ofClass("4") : counts[name];
  }, histograms.total);
}

const hitsOf = (counts: TrafficSnapshot["counters"]) =>
  counts.cache_hit + counts.cache_stale + counts.cache_revalidated;

export const addTallies = (one: Tally, other: Tally): Tally => {
  const sum = new TallySum();
  sum.add(one);
  sum.add(other);
  return sum;
};

/** A mutable tally: reading the history adds thousands, and each addition would allocate another one. */
export class TallySum implements Tally {
  requests = 0;
  errors = 0;
  client_errors = 0;
  aborted_responses = 0;
  retries = 0;
  bytes_in = 0;
  bytes_out = 0;
  cache_lookups = 0;
  cache_hits = 0;
  cache_bytes = 0;
  readonly latency = { count: 0, sum: 0, buckets: new Float64Array(BUCKETS) };

  add(tally: Tally): void {
    for (const name of counters) this[name] += tally[name];
    const { buckets } = this.latency;
    const { count, sum, buckets: others } = tally.latency;
    this.latency.count += count;
    this.latency.sum += sum;
    if (count > 0)
      for (let at = 0; at < BUCKETS; at++) buckets[at] = (buckets[at] ?? 0) + (others[at] ?? 0);
  }
}

/** The difference to `before`. A row with lower counters was reused: then all of it is new. */
export function tallySince(after: Tally, before: Tally | undefined): Tally {
  if (before === undefined || after.requests < before.requests) return after;
  return tallyOf(
    (name) => Math.max(0, after[name] - before[name]),
    diff(after.latency, before.latency),
  );
}

export function toDocument(tally: Tally): TallyDocument {
  const { latency } = tally;
  const buckets: number[] = [];
  latency.buckets.forEach((count, index) => {
    if (count > 0) buckets.push(index, count);
  });
  const counts = Object.fromEntries(counters.map((name) => [name, tally[name]]));
  return { ...(counts as Record<Counter, number>), sum_us: Math.round(latency.sum), buckets };
}

/** A document of another version may lack members, or have more. */
export function fromDocument(document: Partial<TallyDocument>): Tally {
  const buckets = new Float64Array(BUCKETS);
  const written = document.buckets ?? [];
  let total = 0;
  for (let at = 0; at + 1 < written.length; at += 2) {
    const count = written[at + 1] ?? 0;
    buckets[written[at] ?? 0] = count;
    total += count;
  }
  const latency = { count: total, sum: document.sum_us ?? 0, buckets };
  return tallyOf((name) => document[name] ?? 0, latency);
}

/** Milliseconds; null without measurements. */
export interface LatencyView {
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** A tally as the API shows it. */
export interface TallyView extends Readonly<Record<Counter, number>> {
  /** `errors` as a fraction of `requests`, from 0 to 1. */
  readonly error_share: number;
  /** `cache_hits` as a fraction of `cache_lookups`; null without lookups. */
  readonly cache_hit_ratio: number | null;
  readonly latency_ms: LatencyView;
}

export function toView(tally: Tally): TallyView {
  const { latency, requests, errors, cache_lookups: lookups, cache_hits: hits } = tally;
  const at = (share: number) =>
    latency.count === 0 ? null : milliseconds(percentile(latency, share));
  const counts = Object.fromEntries(counters.map((name) => [name, tally[name]]));
  return {
    ...(counts as Record<Counter, number>),
    error_share: requests === 0 ? 0 : round(errors / requests, 1e6),
    cache_hit_ratio: lookups === 0 ? null : round(hits / lookups, 1e6),
    latency_ms: {
      mean: latency.count === 0 ? null : milliseconds(latency.sum / latency.count),
      p50: at(0.5),
      p95: at(0.95),
      p99: at(0.99),
    },
  };
}

const round = (value: number, steps: number) => Math.round(value * steps) / steps;

const milliseconds = (us: number) => round(us / 1000, 1000);
