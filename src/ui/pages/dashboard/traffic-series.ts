// The statistics as series for plots: one value per step, also without traffic; renders nothing.
import type { Schemas } from "../../api/resources.ts";

type Stats = Schemas["Stats"];

export interface TrafficSeries {
  /** Seconds since the epoch: when each step began. */
  readonly times: readonly number[];
  readonly requestsPerSecond: readonly number[];
  /** Percent; null without requests. */
  readonly errorPercent: readonly (number | null)[];
  readonly clientErrorPercent: readonly (number | null)[];
  /** Milliseconds; null without requests. */
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

export function toSeries({ at, history }: Pick<Stats, "at" | "history">): TrafficSeries {
  const { from, to, step_seconds: step, points } = history;
  const byTime = new Map(points.map((point) => [secondsOf(point.at), point]));
  const times: number[] = [];
  for (let time = secondsOf(from); time <= secondsOf(to); time += step) times.push(time);
  const all = times.map((time) => byTime.get(time) ?? null);
  const now = secondsOf(at);
  const percent = (part: "errors" | "client_errors") =>
    all.map((point) =>
      point === null || point.requests === 0 ? null : (point[part] / point.requests) * 100,
    );
  const latency = (name: "p50" | "p95" | "p99") =>
    all.map((point) => point?.latency_ms[name] ?? null);
  return {
    times,
    requestsPerSecond: times.map((time, index) => {
      // The last step is incomplete: its length is the elapsed time, at least ten seconds, the counting interval.
      const lasted = Math.min(step, Math.max(10, now - time));
      return (all[index]?.requests ?? 0) / lasted;
    }),
    errorPercent: percent("errors"),
    clientErrorPercent: percent("client_errors"),
    p50: latency("p50"),
    p95: latency("p95"),
    p99: latency("p99"),
  };
}

const secondsOf = (at: string): number => Math.floor(Date.parse(at) / 1000);
