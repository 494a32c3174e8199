// What is counted for each route, stream route, listener and plugin, and where it lies in a row; knows no thread.
import { HISTOGRAM_CELLS } from "./histogram.ts";

/** Statuses that are counted by themselves; all others are counted by their class. */
const EXACT = [
  101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409,
  410, 413, 414, 415, 421, 422, 429, 431, 499, 500, 501, 502, 503, 504, 508,
] as const;
const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"] as const;

/** The values of the label `code`, in the order of their cells. */
export const codes: readonly string[] = [...EXACT.map(String), ...CLASSES];

/** Cells that are plain counters. */
const counters = [
  /** Requests, or connections of a stream route, that have ended. */
  "ended",
  /** Bytes of bodies from clients and to them. */
  "bytes_in",
  "bytes_out",
  "retries",
  /** Answers that broke off, because a target or the client was gone. */
  "broken_off",
  /** Connections that were opened; TLS handshakes of a listener, and those that failed. */
  "opened",
  "handshakes",
  "handshakes_failed",
  /** What a plugin decided. */
  "pass",
  "reply",
  "reject",
  "error",
  /** Records of what happened that a plugin has lost. */
  "dropped",
] as const;
export type TrafficCounter = (typeof counters)[number];

/** What a plugin can decide: it lets a request go on, answers it, refuses it, or fails. */
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

const codeIndexes = Uint8Array.from({ length: 1000 }, (_, status) => {
  const exact = (EXACT as readonly number[]).indexOf(status);
  if (exact >= 0) return exact;
  const hundreds = Math.floor(status / 100);
  return EXACT.length + (hundreds >= 1 && hundreds <= 5 ? hundreds - 1 : CLASSES.length - 1);
});

/** Cell of a status. */
export const codeCell = (status: number): number =>
  CODES_AT + (codeIndexes[status] ?? codes.length - 1);
