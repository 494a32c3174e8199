// Statistics from counters to the database, with a clock of the test's own: nothing counts twice, little is lost, nothing grows.
import { describe, expect, test } from "bun:test";
import type { RollupRow } from "../../../src/model/rollup.ts";
import { MAX_OBJECTS, Rollups } from "../../../src/observe/stats/rollups.ts";
import { Stats, type StatsRange } from "../../../src/observe/stats/stats.ts";
import { tallyOfRow, tallySince } from "../../../src/observe/stats/tally.ts";
import { TrafficDeltas } from "../../../src/observe/stats/traffic-deltas.ts";
import { createLog } from "../../../src/log.ts";
import { RELATIVE_ERROR } from "../../../src/shared-memory/histogram.ts";
import { targetSeriesKey } from "../../../src/shared-memory/series-key.ts";
import { OTHER_ROW, TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import { RollupTable } from "../../../src/store/rollups.ts";
import { at, configOf, route, service, target } from "../../unit/control/fixture.ts";
import { openStore, temporaryDirectory } from "../../unit/store/fixture.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
/** The full hour. */
const START = Date.parse(at);

const ended = { status: 200, totalUs: 1000, upstreamUs: 500, bytesIn: 1, bytesOut: 2 };
const plain = { retries: 0, isResponseAborted: false };

/** A gateway's counters and clock on a database; `restart` begins with new counters, as a new process does. */
function scene(objects = 3) {
  const directory = temporaryDirectory();
  const opened = openStore(directory.path);
  const clock = { at: START, now: () => clock.at };
  const ids = Array.from({ length: objects }, (_, index) => `r${index}`);
  const config = configOf({
    services: [service("web")],
    routes: ids.map((id) => route(id, { service_id: "web" })),
    targets: [target("t0", { service_id: "web", host: "10.0.0.1" })],
  });
  const failure = { error: null as Error | null };
  const table = opened.store.with((context) => new RollupTable(context));
  const logged: string[] = [];
  const begin = () => {
    const metrics = TrafficMetrics.create(2, { capacity: objects + 5 });
    const targets = TrafficMetrics.create(2, { capacity: 5 });
    const rows = ids.map((id) => metrics.claim(id));
    targets.claim(targetSeriesKey("t0"));
    const writers = [metrics.writer(0), metrics.writer(1)];
    const targetWriter = targets.writer(0);
    const stats = new Stats({
      clock,
      config: () => config,
      present: () => ({
        in_flight: 0,
        open_websockets: 0,
        open_connections: 0,
        open_http2_streams: 0,
      }),
      deltas: new TrafficDeltas({
        config: () => config,
        routes: () => [
          ...rows.map((row, index) => ({
            owner: {
              kind: "route" as const,
              id: ids[index]!,
              name: ids[index]!,
              serviceId: "web",
              serviceName: "web",
            },
            traffic: metrics.read(row),
          })),
          {
            owner: { kind: "other", id: "", name: "_other", serviceId: "", serviceName: "_other" },
            traffic: metrics.read(OTHER_ROW),
          },
        ],
        targets: () => [
          {
            owner: { kind: "target", id: "t0", name: "t0", serviceId: "", serviceName: "" },
            traffic: targets.read(targets.seriesOf(targetSeriesKey("t0")).row),
          },
        ],
      }),
      rollups: new Rollups({
        clock,
        log: createLog({ level: "debug", format: "json", sink: (line) => logged.push(line) }),
        store: {
          transact(work) {
            if (failure.error !== null) throw failure.error;
            table.transact(work);
          },
          range: (key, time) => table.range(key, time),
        },
      }),
    });
    const serve = (index: number, fields: Partial<typeof ended> & { worker?: number } = {}) => {
      const { worker = 0, ...request } = fields;
      writers[worker]!.ended(metrics.seriesOf(ids[index]!), { ...ended, ...plain, ...request });
      targetWriter.ended(targets.seriesOf(targetSeriesKey("t0")), {
        ...ended,
        ...plain,
        ...request,
      });
    };
    return { stats, serve };
  };
  return {
    clock,
    logged,
    failure,
    begin,
    rows: () => {
      const found: RollupRow[] = [];
      for (const span of [60, 3600] as const)
        for (const kind of ["total", "route", "service", "target"] as const)
          found.push(...table.range({ span, kind }, { from: 0, to: 1e11 }));
      return found;
    },
    [Symbol.dispose]() {
      opened[Symbol.dispose]();
      directory[Symbol.dispose]();
    },
  };
}

const read = (stats: Stats, range: StatsRange = "1h") =>
  stats.read({ range, top: 40, subject: null });

describe("what was counted", () => {
  test("is counted in its minute and its hour, once, for every kind", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    serve(0);
    serve(1, { worker: 1, status: 503 });
    all.clock.at += MINUTE;
    stats.count();
    serve(0, { status: 404 });
    all.clock.at += MINUTE;
    stats.count();
    all.clock.at += 10_000;
    const { history } = read(stats);
    expect(history.points.map((point) => [point.at, point.requests, point.errors])).toEqual([
      ["2026-01-01T00:00:00.000Z", 2, 1],
      ["2026-01-01T00:01:00.000Z", 1, 0],
    ]);
    expect(history.total).toMatchObject({ requests: 3, errors: 1, client_errors: 1, bytes_out: 6 });
    expect(history.by_route.map(({ id, requests }) => [id, requests])).toEqual([
      ["r0", 2],
      ["r1", 1],
    ]);
    expect(history.by_service).toMatchObject([{ id: "web", name: "web", requests: 3 }]);
    expect(history.by_target).toMatchObject([{ id: "t0", name: "10.0.0.1:80", requests: 3 }]);
    const hours = all.rows().filter(({ span, kind }) => span === 3600 && kind === "total");
    expect(hours).toMatchObject([{ at: START / 1000, document: { requests: 3 } }]);
  });

  test("of the present minute is seen before it is written", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    all.clock.at += 1000;
    serve(0);
    const { now, history } = read(stats);
    expect([now.requests, now.seconds, history.total.requests]).toEqual([1, 1, 1]);
    expect(all.rows()).toEqual([]);
    all.clock.at += 2 * MINUTE;
    expect(read(stats).now.requests).toBe(0);
    expect(read(stats).history.total.requests).toBe(1);
  });

  test("leaves no row where nothing happened", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    serve(0);
    for (let minute = 0; minute < 30; minute++) {
      all.clock.at += MINUTE;
      stats.count();
    }
    expect(all.rows()).toHaveLength(8);
  });

  test("gives percentiles of all requests, not averages of percentiles", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    const taken: number[] = [];
    for (let minute = 0; minute < 20; minute++) {
      // One minute in ten is very slow and busy.
      const isSlow = minute % 10 === 0;
      for (let n = 0; n < (isSlow ? 300 : 10); n++) {
        const totalUs = (isSlow ? 200_000 : 1000) * (1 + n / 100);
        taken.push(totalUs);
        serve(n % 3, { totalUs, worker: n % 2 });
      }
      all.clock.at += MINUTE;
      stats.count();
    }
    taken.sort((a, b) => a - b);
    const { total } = read(stats).history;
    for (const [name, share] of [
      ["p50", 0.5],
      ["p95", 0.95],
      ["p99", 0.99],
    ] as const) {
      const exact = taken[Math.ceil(share * taken.length) - 1]! / 1000;
      expect(Math.abs(total.latency_ms[name]! - exact) / exact).toBeLessThanOrEqual(RELATIVE_ERROR);
    }
  });
});

describe("a gateway that ends", () => {
  test("in the middle of a minute continues in the same minute, and counts nothing twice", () => {
    using all = scene();
    const first = all.begin();
    all.clock.at += 20_000;
    first.serve(0);
    first.stats.stop();
    const second = all.begin();
    all.clock.at += 20_000;
    second.serve(0);
    second.serve(1);
    all.clock.at += MINUTE;
    const { history } = read(second.stats);
    expect(history.points.map(({ requests }) => requests)).toEqual([3]);
    expect(history.by_route).toMatchObject([
      { id: "r0", requests: 2 },
      { id: "r1", requests: 1 },
    ]);
  });

  test("by a crash loses the present minute at most", () => {
    using all = scene();
    const first = all.begin();
    first.serve(0);
    all.clock.at += MINUTE;
    first.stats.count();
    first.serve(0);
    all.clock.at += 30_000;
    first.stats.count();
    expect(read(all.begin().stats).history.total.requests).toBe(1);
  });
});

describe("a clock", () => {
  test("that is set back an hour loses nothing and counts nothing twice", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    const counted: number[] = [];
    for (let minute = 0; minute < 90; minute++) {
      serve(0);
      if (minute === 45) all.clock.at -= 30 * MINUTE;
      all.clock.at += MINUTE;
      stats.count();
      counted.push(read(stats, "24h").history.total.requests);
    }
    const sum = all
      .rows()
      .filter(({ kind, span }) => kind === "total" && span === 60)
      .reduce((total, { document }) => total + document.requests, 0);
    expect(sum).toBe(90);
    expect(counted.at(-1)).toBe(90);
    expect(read(stats).now.seconds).toBeLessThanOrEqual(70);
  });

  test("that jumps far ahead and back leaves nothing in the future", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    all.clock.at += 1000 * 24 * HOUR;
    serve(0);
    stats.count();
    all.clock.at += MINUTE;
    stats.count();
    all.clock.at = START;
    stats.count();
    serve(0);
    all.clock.at += MINUTE;
    stats.count();
    expect(all.rows().every((row) => row.at <= START / 1000)).toBe(true);
    expect(read(stats).history.total.requests).toBe(1);
  });
});

describe("retention", () => {
  test("are minutes of a day and hours of thirty days", () => {
    using all = scene();
    const { stats, serve } = all.begin();
    for (let hour = 0; hour < 32 * 24; hour++) {
      serve(0);
      all.clock.at += HOUR;
      stats.count();
    }
    const totals = all.rows().filter(({ kind }) => kind === "total");
    const of = (span: number) => totals.filter((row) => row.span === span);
    expect(of(60).length).toBeLessThanOrEqual(25);
    expect(of(60).length).toBeGreaterThanOrEqual(24);
    expect(of(3600).length).toBeGreaterThanOrEqual(720);
    expect(of(3600).length).toBeLessThanOrEqual(722);
    expect(read(stats, "30d").history.points.length).toBeGreaterThanOrEqual(719);
  });

  test("is bounded: of many objects those with the most requests, the rest is _other", () => {
    const objects = 200;
    using all = scene(objects);
    const { stats, serve } = all.begin();
    let total = 0;
    for (let minute = 0; minute < 5; minute++) {
      for (let index = 0; index < objects; index++)
        // Others are busy in each minute.
        for (let n = 0; n <= (index + minute * 40) % objects; n += 20) {
          serve(index);
          total++;
        }
      all.clock.at += MINUTE;
      stats.count();
    }
    const routes = all.rows().filter(({ kind }) => kind === "route");
    const minutes = Map.groupBy(
      routes.filter(({ span }) => span === 60),
      (row) => row.at,
    );
    expect(minutes.size).toBe(5);
    for (const rows of minutes.values()) expect(rows).toHaveLength(MAX_OBJECTS[60] + 1);
    const hour = routes.filter(({ span }) => span === 3600);
    expect(hour).toHaveLength(MAX_OBJECTS[3600] + 1);
    expect(hour.reduce((sum, { document }) => sum + document.requests, 0)).toBe(total);
    expect(read(stats).history.by_route[0]?.id).toBe("_other");
    expect(read(stats).history.total.requests).toBe(total);
  });
});

test("a database that cannot be written is retried, and then has everything", () => {
  using all = scene();
  const { stats, serve } = all.begin();
  all.failure.error = new Error("the disk is full");
  for (let minute = 0; minute < 100; minute++) {
    serve(0);
    all.clock.at += MINUTE;
    stats.count();
  }
  expect(all.logged).toHaveLength(1);
  all.failure.error = null;
  stats.count();
  const totals = all.rows().filter(({ kind, span }) => kind === "total" && span === 60);
  expect(totals.reduce((sum, { document }) => sum + document.requests, 0)).toBe(100);
});

test("the history of one object can be requested", () => {
  using all = scene();
  const first = all.begin();
  first.serve(0);
  first.serve(0);
  first.stats.count();
  const question = { range: "1h", top: 5, subject: { kind: "route", id: "r0" } } as const;
  expect(first.stats.read(question).history.points).toMatchObject([{ requests: 2 }]);
  expect(
    first.stats.read({ ...question, subject: { kind: "route", id: "gone" } }).history.points,
  ).toEqual([]);
});

test("a reused row counts from zero", () => {
  const metrics = TrafficMetrics.create(1, { capacity: 5 });
  const count = (times: number) => {
    const series = metrics.seriesOf("a");
    for (let n = 0; n < times; n++) metrics.writer(0).ended(series, { ...ended, ...plain });
    return tallyOfRow(metrics.read(series.row));
  };
  metrics.claim("a");
  const before = count(5);
  metrics.release("a");
  metrics.claim("a");
  expect(tallySince(count(2), before)).toMatchObject({ requests: 2, latency: { count: 2 } });
});
