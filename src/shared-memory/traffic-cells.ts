// The layout of a row of traffic counters; knows no thread.
import { HISTOGRAM_CELLS } from "./histogram.ts";

/** Statuses with a counter of their own; all others count by class. */
const EXACT = [
  101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409,
  410, 413, 414, 415, 421, 422, 429, 431, 499, 500, 501, 502, 503, 504, 508,
] as const;
const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"] as const;

/** The values of the label `code`, in the order of their cells. */
export const codes: readonly string[] = [...EXACT.map(String), ...CLASSES];

/** Statuses of gRPC calls, in the order of their numbers. */
const GRPC = [
  "grpc_0",
  "grpc_1",
  "grpc_2",
  "grpc_3",
  "grpc_4",
  "grpc_5",
  "grpc_6",
  "grpc_7",
  "grpc_8",
  "grpc_9",
  "grpc_10",
  "grpc_11",
  "grpc_12",
  "grpc_13",
  "grpc_14",
  "grpc_15",
  "grpc_16",
] as const;

/** Cells that are plain counters. */
const counters = [
  /** Ended requests, or connections of a stream route. */
  "ended",
  /** Body bytes from clients and to them. */
  "bytes_in",
  "bytes_out",
  "retries",
  /** Responses that ended before their body did. */
  "aborted_responses",
  /** Connections of a stream route; successful and failed TLS handshakes of a listener. */
  "opened",
  "handshakes",
  "handshakes_failed",
  /** Decisions of a plugin, see `pluginDecisions`. */
  "pass",
  "reply",
  "reject",
  "error",
  /** Log records that a plugin has dropped. */
  "dropped",
  /** Requests by what the cache did, see `CacheStatus`. */
  "cache_hit",
  "cache_stale",
  "cache_revalidated",
  "cache_miss",
  "cache_expired",
  "cache_bypass",
  /** Those that got the response to another request. */
  "cache_collapsed",
  /** Body bytes to clients from stored responses. */
  "cache_bytes",
  /** gRPC calls by status. */
  ...GRPC,
] as const;
export type TrafficCounter = (typeof counters)[number];

/** The counter of a gRPC status. */
export const grpcCounter = (status: number): TrafficCounter => GRPC[status] ?? "grpc_2";

/** A plugin lets a request pass, responds to it, rejects it or fails. */
export const pluginDecisions = [
  "pass",
  "reply",
  "reject",
  "error",
] as const satisfies readonly TrafficCounter[];
export type PluginDecision = (typeof pluginDecisions)[number];

const histograms = ["total", "upstream", "overhead"] as const;
export type TrafficHistogram = (typeof histograms)[number];

export const counterAt = Object.fromEntries(
  counters.map((name, index) => [name, index]),
) as Readonly<Record<TrafficCounter, number>>;

/** Cell of the first code. */
export const CODES_AT: number = counters.length;

const HISTOGRAMS_AT = CODES_AT + codes.length;

export const histogramAt = Object.fromEntries(
  histograms.map((name, index) => [name, HISTOGRAMS_AT + index * HISTOGRAM_CELLS]),
) as Readonly<Record<TrafficHistogram, number>>;

/** Cells of a row. */
export const ROW_CELLS: number = HISTOGRAMS_AT + histograms.length * HISTOGRAM_CELLS;

/** Cell of each status below 1000. */
export const codeCells: Uint8Array = Uint8Array.from({ length: 1000 }, (_, status) => {
  const exact = (EXACT as readonly number[]).indexOf(status);
  if (exact >= 0) return CODES_AT + exact;
  const hundreds = Math.floor(status / 100);
  const index = hundreds >= 1 && hundreds <= 5 ? hundreds - 1 : CLASSES.length - 1;
  return CODES_AT + EXACT.length + index;
});

/** Cell of every other status. */
export const OTHER_CODE: number = CODES_AT + codes.length - 1;
