// Metrics per route: deleted routes stay readable for five minutes, and the number of rows is bounded.
import { expect, test } from "bun:test";
import { SeriesRows } from "../../../../src/observe/metrics/series-rows.ts";
import { routeSeriesKey } from "../../../../src/shared-memory/series-key.ts";
import { TrafficMetrics } from "../../../../src/shared-memory/traffic-metrics.ts";
import type { Compiled } from "../../../../src/snapshot/compile-context.ts";
import { ObservedRollout, type Rollout } from "../../../../src/snapshot/rollout.ts";
import { compiled, configOf, route, service } from "../../control/fixture.ts";

const MINUTE = 60_000;
const workers: Rollout = {
  prepare: async () => [],
  activate: async () => {},
  discard: async () => {},
  status: () => ({ workers: 1, ready: 1, revision: 1 }),
};
const request = { totalUs: 1, upstreamUs: 1, bytesIn: 0, bytesOut: 0, retries: 0 };

function scene(capacity: number) {
  const metrics = TrafficMetrics.create(1, { capacity });
  const clock = { time: 0, now: () => clock.time };
  let last: Compiled | null = null;
  const next = (names: readonly string[]) => {
    const config = configOf({
      services: [service("s")],
      routes: names.map((name) => route(name, { service_id: "s", hosts: [`${name}.test`] })),
    });
    last = compiled(config, last);
    return last.snapshot;
  };
  const served = next([]);
  const rows = new SeriesRows({ metrics, clock, served, of: "traffic" });
  const rollout = new ObservedRollout(workers, [rows], served);
  return {
    clock,
    serve: async (...names: string[]) => {
      const snapshot = next(names);
      await rollout.prepare(snapshot);
      await rollout.activate(snapshot.revision);
    },
    give: async (...names: string[]) => {
      const snapshot = next(names);
      await rollout.prepare(snapshot);
      await rollout.discard(snapshot.revision);
    },
    count: (name: string) =>
      metrics.writer(0).ended(metrics.seriesOf(routeSeriesKey(name, "s")), {
        ...request,
        status: 200,
        isResponseAborted: false,
      }),
    counts: () =>
      Object.fromEntries(
        rows
          .read()
          .filter(({ traffic }) => traffic.counters.ended > 0)
          .map(({ owner, traffic }) => [owner.name, traffic.counters.ended]),
      ),
  };
}

test("the counts of a deleted route can be read for five minutes", async () => {
  const { clock, serve, count, counts } = scene(10);
  await serve("a", "b");
  for (const name of ["a", "a", "b"]) count(name);
  await serve("b");
  clock.time += 4 * MINUTE;
  expect(counts()).toEqual({ a: 2, b: 1 });
  clock.time += 2 * MINUTE;
  expect(counts()).toEqual({ b: 1 });
  await serve("a", "b");
  expect(counts()).toEqual({ b: 1 });
  count("a");
  expect(counts()).toEqual({ a: 1, b: 1 });
});

test("a route that returns before that continues its counts", async () => {
  const { clock, serve, count, counts } = scene(10);
  await serve("a");
  count("a");
  await serve();
  clock.time += MINUTE;
  await serve("a");
  clock.time += 10 * MINUTE;
  count("a");
  expect(counts()).toEqual({ a: 2 });
});

test("a discarded change claims and releases no rows", async () => {
  const { clock, serve, give, count, counts } = scene(3);
  await serve("a");
  count("a");
  for (let round = 0; round < 20; round++) {
    await give("a", `x${round}`);
    await give();
    clock.time += 6 * MINUTE;
  }
  expect(counts()).toEqual({ a: 1 });
  await serve("a", "b");
  count("b");
  expect(counts()).toEqual({ a: 1, b: 1 });
});

test("routes without a free row count together", async () => {
  const { serve, count, counts } = scene(2);
  const names = ["a", "b", "c", "d", "e"];
  await serve(...names);
  for (const name of names) count(name);
  expect(counts()).toEqual({ a: 1, b: 1, _other: 3 });
});
