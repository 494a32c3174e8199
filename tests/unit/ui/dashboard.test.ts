// The parts of the dashboard that need no browser: series without gaps, readable numbers.
import { expect, test } from "bun:test";
import type { Schemas } from "../../../src/ui/api/resources.ts";
import { toSeries } from "../../../src/ui/pages/dashboard/traffic-series.ts";
import { inBytes, inMilliseconds, inPercent, inRate } from "../../../src/ui/parts/quantities.ts";

test("every step has a value, and the current one is as long as it has lasted", () => {
  const at = (seconds: number) => new Date(seconds * 1000).toISOString();
  const latency_ms = { mean: 3, p50: 2, p95: 5, p99: 9 };
  const point = { requests: 120, errors: 12, client_errors: 6, latency_ms };
  const history = {
    from: at(600),
    to: at(780),
    step_seconds: 60,
    points: [
      { ...point, at: at(660) },
      { ...point, at: at(780) },
    ],
  } as unknown as Schemas["Stats"]["history"];
  const series = toSeries({ at: at(800), history });
  expect(series.times).toEqual([600, 660, 720, 780]);
  expect(series.requestsPerSecond).toEqual([0, 2, 0, 6]);
  expect(series.errorPercent).toEqual([null, 10, null, 10]);
  expect(series.clientErrorPercent).toEqual([null, 5, null, 5]);
  expect(series.p95).toEqual([null, 5, null, 5]);
});

test.each([
  [inMilliseconds(0), "0 ms"],
  [inMilliseconds(0.123), "0.12 ms"],
  [inMilliseconds(42.4), "42 ms"],
  [inMilliseconds(3100), "3.10 s"],
  [inMilliseconds(61_000), "61.0 s"],
  [inBytes(0), "0 B"],
  [inBytes(999), "999 B"],
  [inBytes(1500), "1.5 KB"],
  [inBytes(2.5e9), "2.5 GB"],
  [inRate(0), "0"],
  [inRate(0.004), "<0.01"],
  [inRate(12.34), "12.3"],
  [inRate(12_345), "12,345"],
  [inPercent(0), "0 %"],
  [inPercent(0.0004), "<0.1 %"],
  [inPercent(0.0123), "1.2 %"],
  [inPercent(0.5), "50 %"],
])("%s is formatted as %s", (written, expected) => {
  expect(written).toBe(expected);
});
