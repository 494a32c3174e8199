// Metrics of caches: requests of an instance over all workers, what its store holds, and the names of instances.
import { expect, test } from "bun:test";
import { cacheMetrics } from "../../../../src/observe/metrics/cache-metrics.ts";
import { SeriesRows } from "../../../../src/observe/metrics/series-rows.ts";
import { writeMetrics } from "../../../../src/observe/metrics/text-format.ts";
import { cacheSeriesKey } from "../../../../src/shared-memory/series-key.ts";
import { TrafficMetrics } from "../../../../src/shared-memory/traffic-metrics.ts";
import { readMetrics } from "../../../support/metrics-text.ts";
import { decode } from "../../../../src/model/decode.ts";
import { pluginInput } from "../../../../src/model/plugin.ts";
import { compiled, configOf, service } from "../../control/fixture.ts";

const at = "2026-01-01T00:00:00.000Z";
const made = (id: string, input: object) => ({
  ...decode(pluginInput, input),
  ...{ id, created_at: at, updated_at: at },
});
const isCache = (name: string) => name === "response-cache";

test("the requests of all workers count for their instance, and only caches have rows", () => {
  const metrics = TrafficMetrics.create(2);
  const plugins = [
    made("c1", { name: "response-cache", label: "pages" }),
    made("c2", { name: "response-cache", service_id: "s" }),
    made("r1", { name: "cors" }),
  ];
  const config = {
    ...configOf({ services: [service("s")] }),
    plugins: new Map(plugins.map((plugin) => [plugin.id, plugin])),
  };
  const { snapshot: served } = compiled(config, null);
  const clock = { now: () => 0 };
  const rows = new SeriesRows({ metrics, clock, served, isCache, of: "traffic" });
  for (const [worker, count] of [4, 3].entries()) {
    const writer = metrics.writer(worker);
    const series = new TrafficMetrics(metrics.memoryFor(worker)).seriesOf(cacheSeriesKey("c1"));
    writer.add(series, "cache_hit", count);
    writer.add(series, "cache_bytes", 10 * count);
    writer.add(series, "cache_collapsed", 1);
  }
  const figure = { entries: 12, bytes: 34_567, maxBytes: 100_000, fileBytes: 89, evictions: 5 };
  const text = writeMetrics(
    cacheMetrics({
      counted: rows.read(),
      figures: new Map([["c2", figure]]),
      nameOf: (id) => config.plugins.get(id)?.label ?? id,
    }),
    "prometheus",
  );
  const read = readMetrics(text, "prometheus");
  const pages = { plugin: "pages" };
  expect(read.sum("sluice_cache_requests_total", { ...pages, status: "hit" })).toBe(7);
  expect(read.sum("sluice_cache_requests_total")).toBe(7);
  expect(read.sum("sluice_cache_served_bytes_total", pages)).toBe(70);
  expect(read.sum("sluice_cache_collapsed_requests_total", pages)).toBe(2);
  const ofStore = ["entries", "bytes", "limit_bytes", "file_bytes", "evictions_total"];
  expect(ofStore.map((name) => read.sum(`sluice_cache_${name}`, { plugin: "c2" }))).toEqual(
    Object.values(figure),
  );
  expect(text).not.toContain("r1");
});
