// Counts and recent requests of a real pool of workers outlive the workers.
import { afterEach, expect, test } from "bun:test";
import { createLog } from "../../../src/log.ts";
import { RequestRing } from "../../../src/shared-memory/request-ring.ts";
import { routeSeriesKey } from "../../../src/shared-memory/series-key.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "../../../src/shared-memory/worker-board.ts";
import { WorkerPool } from "../../../src/supervisor/worker-pool.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { freePort } from "../../support/data-plane.ts";
import { startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import {
  compiled,
  configOf,
  listener,
  route,
  service,
  target,
} from "../../unit/control/fixture.ts";

const cleanups = cleanupsOf(afterEach);

const WORKERS = 4;

test("over the restart of every worker the totals equal the requests that were sent", async () => {
  const origin = startOrigin();
  cleanups.push(() => origin.stop());
  const port = freePort();
  const { snapshot } = compiled(
    configOf({
      listeners: [listener("l", { address: "127.0.0.1", port })],
      services: [service("s")],
      targets: [target("t", { service_id: "s", host: "127.0.0.1", port: origin.port })],
      routes: [route("r", { service_id: "s" })],
    }),
  );
  const traffic = TrafficMetrics.create(WORKERS);
  const row = traffic.claim(routeSeriesKey("r", "s"));
  const requests = RequestRing.create(1000);
  const pool = new WorkerPool({
    url: new URL("../../../src/worker.ts", import.meta.url),
    workers: WORKERS,
    instanceId: "test",
    stickyKey: "test",
    pluginKey: "test",
    dnsServers: [],
    board: WorkerBoard.create(WORKERS),
    targets: TargetBoard.create(WORKERS),
    traffic,
    requests,
    log: createLog({ level: "error", format: "json", sink() {} }),
    snapshot,
  });
  cleanups.push(() => pool.drain(100));
  expect(await pool.start()).toEqual([]);
  const send = async (count: number) => {
    const answers = Array.from({ length: count }, () =>
      fetch(`http://127.0.0.1:${port}/`, { keepalive: false }).then((answer) => answer.text()),
    );
    await Promise.all(answers);
  };
  const counted = () => traffic.read(row).counters.ended;
  await send(40);
  await eventually(() => counted() === 40);
  await pool.ask({ kind: "flush" });
  for (const slot of pool.slots) {
    slot.replace("test");
    expect(await slot.becomesReady(10_000)).toBe(true);
    expect(counted()).toBe(40);
  }
  await send(40);
  await eventually(() => counted() === 80);
  await pool.ask({ kind: "flush" });
  expect(traffic.read(row).histograms.total.count).toBe(80);
  expect(requests.next).toBe(80);
  const read = Array.from({ length: 80 }, (_, sequence) => requests.read(sequence));
  expect(read.every((entry) => entry?.route === "r" && entry.status === 200)).toBe(true);
  expect(pool.states().map(({ restarts }) => restarts)).toEqual([1, 1, 1, 1]);
});
