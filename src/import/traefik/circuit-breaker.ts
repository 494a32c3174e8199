// Converts the middleware circuitBreaker and its expression to the plugin circuit-breaker; knows no router.
import type { Document } from "../../control/body.ts";
import { secondsOf } from "./durations.ts";
import type { MiddlewareConverter } from "./middlewares.ts";

const UNKNOWN =
  "its expression has no equivalent: use the plugin circuit-breaker, which has one share of failed requests and one of slow ones";

export const circuitBreaker: MiddlewareConverter = (settings) => {
  const expression = settings.text("expression") ?? "";
  const found = thresholdsOf(expression);
  if (found === null) {
    settings.drop(UNKNOWN);
    return {};
  }
  settings.omit("checkPeriod", "the share is compared at each request");
  settings.omit("recoveryDuration", "set half_open_requests and close_after of the plugin");
  const bounds = { min: 1, max: 86_400 };
  const seconds = secondsOf(settings, "fallbackDuration", bounds);
  const status = settings.bounded("responseCode", { min: 400, max: 599 });
  const countsFailures = found["error_ratio"] !== undefined;
  settings.changed(
    "expression",
    countsFailures
      ? "connection errors and timeouts always count; min_requests is 1, as in Traefik: raise it where few requests come"
      : "it also opens when all requests of a window are connection errors or timeouts; min_requests keeps its default",
  );
  const config = {
    ...(countsFailures ? { min_requests: 1 } : { error_ratio: 1, statuses: [] }),
    ...found,
    open_for: seconds ?? 10,
    ...(status === null ? {} : { response: { status } }),
  };
  return { plugins: [{ name: "circuit-breaker", config }] };
};

const NUMBER = "(\\d+(?:\\.\\d+)?)";
const CODES = "\\(\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,\\s*(\\d+)\\s*\\)";
const COMPARED = `\\s*>=?\\s*${NUMBER}`;
const terms: readonly {
  readonly pattern: RegExp;
  readonly kind: "failed" | "slow";
  readonly read: (numbers: readonly number[]) => Document | null;
}[] = [
  {
    pattern: new RegExp(`^NetworkErrorRatio\\(\\s*\\)${COMPARED}$`),
    kind: "failed",
    // Traefik counts its own 502 and 504 for targets that do not respond.
    read: ([ratio = 0]) => failures(ratio, [502, 504]),
  },
  {
    pattern: new RegExp(`^ResponseCodeRatio${CODES}${COMPARED}$`),
    kind: "failed",
    read: ([from = 0, to = 0, base = 0, end = 0, ratio = 0]) => {
      // Of all responses; the plugin has no other share.
      if (base > 100 || end < 600) return null;
      const first = Math.max(from, 100);
      const count = Math.min(to, 600) - first;
      if (count < 1 || count > 100) return null;
      return failures(
        ratio,
        Array.from({ length: count }, (_, at) => first + at),
      );
    },
  },
  {
    pattern: new RegExp(`^LatencyAtQuantileMS\\(\\s*${NUMBER}\\s*\\)${COMPARED}$`),
    kind: "slow",
    read: ([percent = 0, ms = 0]) => {
      const isKnown = percent > 0 && percent < 100 && ms >= 1 && ms <= 3_600_000;
      const latency = { latency_ms: Math.round(ms), latency_quantile: percent / 100 };
      return isKnown ? latency : null;
    },
  },
];

/** Null: the plugin's ratio is above 0, and at most 1. */
const failures = (ratio: number, statuses: readonly number[]): Document | null =>
  ratio > 0 && ratio <= 1 ? { error_ratio: ratio, statuses } : null;

/** Fields of the plugin: alternatives of at most one share of failed requests and one of slow ones; null: no equivalent. */
function thresholdsOf(expression: string): Document | null {
  const kinds = new Set<string>();
  const found: Document = {};
  for (const part of expression.split("||")) {
    const text = part.trim();
    const term = terms.find(({ pattern }) => pattern.test(text));
    if (term === undefined || kinds.has(term.kind)) return null;
    kinds.add(term.kind);
    const fields = term.read((term.pattern.exec(text) ?? []).slice(1).map(Number));
    if (fields === null) return null;
    Object.assign(found, fields);
  }
  return found;
}
