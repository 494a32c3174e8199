// Statistics of traffic as they are stored: rows by time and object; knows no counter and no table.

export const counters = [
  "requests",
  /** Responses with status 500 and above. */
  "errors",
  /** Responses with status 400 to 499. */
  "client_errors",
  "aborted_responses",
  "retries",
  "bytes_in",
  "bytes_out",
  /** Requests that a cache looked up, and those that it responded to: fresh, stale or revalidated. */
  "cache_lookups",
  "cache_hits",
  /** Body bytes of these responses. */
  "cache_bytes",
] as const;
export type Counter = (typeof counters)[number];

/** A tally as plain data; of the histogram only buckets that are not empty: index, count, index, count. */
export interface TallyDocument extends Readonly<Record<Counter, number>> {
  readonly sum_us: number;
  readonly buckets: readonly number[];
}

export const statKinds = ["total", "route", "service", "target"] as const;
export type StatKind = (typeof statKinds)[number];

/** Seconds. */
export const MINUTE = 60;
export const HOUR = 3600;
/** Only for objects: adding up a month from hours would take a second. */
export const DAY = 86_400;
export const spans = [MINUTE, HOUR, DAY] as const;
export type Span = (typeof spans)[number];

/** The content of a row. */
export interface RollupDocument extends TallyDocument {
  readonly name: string;
}

export interface RollupKey {
  readonly span: Span;
  /** Seconds since 1970 at which it began. */
  readonly at: number;
  readonly kind: StatKind;
  readonly object_id: string;
}

export interface RollupRow extends RollupKey {
  readonly document: RollupDocument;
}

/** Rows inside a transaction. */
export interface RollupRows {
  /** By object. */
  at(key: Omit<RollupKey, "object_id">): ReadonlyMap<string, RollupDocument>;
  put(row: RollupRow): void;
  /** Deletes rows that begin before `from` or after `to`. */
  prune(span: Span, retained: { readonly from: number; readonly to: number }): void;
}

export interface RollupStore {
  /** Runs `work` in a transaction. */
  transact(work: (rows: RollupRows) => void): void;
  /** Rows that begin from `from` to `to`, both included, oldest first; of one object, or of all. */
  range(
    key: { readonly span: Span; readonly kind: StatKind; readonly object_id?: string | undefined },
    time: { readonly from: number; readonly to: number },
  ): readonly RollupRow[];
}
