// The text that Prometheus scrapes: a strict parser reads it back, whatever names users choose.
import { describe, expect, test } from "bun:test";
import { type Metric, writeMetrics } from "../../../../src/observe/metrics/text-format.ts";
import { readMetrics } from "../../../support/metrics-text.ts";

const hostile = 'a"b\\c\nsluice_x{} 1\n# EOF\n\\';
const metrics: Metric[] = [
  {
    name: "sluice_a",
    help: 'Counts "a".\nOr \\ not.',
    type: "counter",
    samples: [
      { labels: { name: hostile, other: "" }, value: 3 },
      { labels: { name: "é ﬀ", other: "x" }, value: 1e21 },
    ],
  },
  { name: "sluice_b", help: "B.", type: "gauge", samples: [{ labels: {}, value: -0.5 }] },
  { name: "sluice_none", help: "Nothing.", type: "gauge", samples: [] },
  {
    name: "sluice_c",
    help: "C.",
    type: "histogram",
    samples: [
      {
        labels: { route: hostile },
        buckets: [
          [0.001, 1],
          [1, 2],
        ],
        count: 4,
        sum: 7.25,
      },
      { labels: {}, buckets: [[0.001, 0]], count: 0, sum: 0 },
    ],
  },
];

describe.each(["prometheus", "openmetrics"] as const)("as %s", (format) => {
  test("everything is read back as it was, and nothing else", () => {
    const read = readMetrics(writeMetrics(metrics, format), format);
    const counter = format === "openmetrics" ? "sluice_a" : "sluice_a_total";
    expect([...read.families.keys()]).toEqual([counter, "sluice_b", "sluice_c"]);
    expect(read.sum("sluice_a_total", { name: hostile })).toBe(3);
    expect(read.sum("sluice_a_total", { name: "é ﬀ" })).toBe(1e21);
    expect(read.sum("sluice_b")).toBe(-0.5);
    expect(read.sum("sluice_c_bucket", { route: hostile, le: "+Inf" })).toBe(4);
    expect(read.sum("sluice_c_sum", { route: hostile })).toBe(7.25);
    expect(read.sum("sluice_c_bucket", { le: format === "openmetrics" ? "1.0" : "1" })).toBe(2);
  });
});

test("no samples are an empty text with its end marker", () => {
  expect(writeMetrics([], "openmetrics")).toBe("# EOF\n");
});
