// One of several worker threads makes the active checks, and another one takes over when it ends or releases the lease.
import { afterEach, expect, test } from "bun:test";
import { checkingWorker } from "../../../src/shared-memory/check-lease.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { readHealth } from "../../../src/shared-memory/target-health.ts";
import { TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "../../../src/shared-memory/worker-board.ts";
import { diff } from "../../../src/snapshot/diff.ts";
import { WorkerThread } from "../../../src/supervisor/worker-thread.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { compiled, configOf, service, target } from "../../unit/control/fixture.ts";

const cleanups = cleanupsOf(afterEach);

const WORKERS = 3;
/** Seconds between checks: less than the model allows, so that the test does not wait for the clock. */
const INTERVAL = 0.3;
/** Checks of one worker are at least so far apart: the interval less ten per cent. */
const LEAST_GAP_MS = INTERVAL * 900;

async function threads(port: number) {
  const active = { enabled: true, interval: 1, unhealthy_interval: 1, healthy_threshold: 1 };
  const { snapshot } = compiled(
    configOf({
      services: [service("s", { health: { active } })],
      targets: [target("t", { service_id: "s", host: "127.0.0.1", port })],
    }),
  );
  const routes = { table: null, upserts: [], removals: [] };
  const change = structuredClone(
    diff(null, snapshot, { routes, consumers: null, withShared: (plan) => plan }),
  );
  for (const { service: checked } of change.services.upserts)
    Object.assign(checked.health.active, { interval: INTERVAL, unhealthy_interval: INTERVAL });
  const [workerBoard, board] = [WorkerBoard.create(WORKERS), TargetBoard.create(WORKERS)];
  const all = Array.from({ length: WORKERS }, () => {
    const url = new URL("../../../src/worker.ts", import.meta.url);
    const thread = new WorkerThread({ url, onEvent() {}, onEnd() {}, onGone() {} });
    cleanups.push(() => thread.terminate());
    return thread;
  });
  const { revision } = snapshot;
  await Promise.all(
    all.map(async (thread, worker) => {
      thread.post({
        kind: "start",
        thread: worker + 1,
        worker,
        workers: WORKERS,
        instanceId: "test",
        cookieId: "test",
        sessions: [],
        stickyKey: "test",
        pluginKey: "test",
        logDirectories: null,
        dnsServers: [],
        managementAddresses: [],
        sharedCounters: null,
        shared: {
          workers: workerBoard.buffer,
          targets: board.buffer,
          counters: CounterTable.create({ keys: 1024, workers: WORKERS }).buffer,
          traffic: TrafficMetrics.create(WORKERS).memory,
          targetTraffic: TrafficMetrics.create(WORKERS).memory,
          requests: null,
        },
      });
      await thread.ask({ kind: "prepare", change }, ["prepared"], 20_000);
      await thread.ask({ kind: "activate", revision }, ["active"], 20_000);
    }),
  );
  return { board, all };
}

test("one worker makes the checks, and another continues when it ends", async () => {
  const origin = startOrigin();
  cleanups.push(() => origin.stop());
  const startedAt = performance.now();
  const { board, all } = await threads(origin.port);
  const checks = () => origin.requests.length;
  await origin.untilRequests(3);
  const first = checkingWorker(board);

  // Ends like a crash, without releasing the lease.
  all[first ?? -1]?.terminate();
  const second = await eventually(() => {
    const worker = checkingWorker(board);
    return worker === first || worker === null ? null : { worker };
  });
  await origin.untilRequests(checks() + 3);

  // Ends cleanly: the next worker need not wait.
  const released = all[second.worker]?.ask(
    { kind: "drain", timeoutMs: 0, lingerMs: 0 },
    ["stopped"],
    5000,
  );
  const third = await eventually(() => {
    const worker = checkingWorker(board);
    return worker === second.worker || worker === null ? null : { worker };
  });
  await released;
  expect([first, second.worker, third.worker].sort()).toEqual([0, 1, 2]);
  await origin.untilRequests(checks() + 3);

  // Two that check at the same time would make twice as many. Each of the three begins with one at once.
  const most = (performance.now() - startedAt) / LEAST_GAP_MS + WORKERS;
  expect(checks()).toBeLessThanOrEqual(most);

  // The results of the first worker apply to the last one, too.
  const health = () => readHealth(board, board.rowOf("t"), Date.now()).state;
  expect(health()).toBe("healthy");
  origin.answer = reply("", { status: "500 No" });
  await eventually(() => health() === "unhealthy");
});

test("a worker restarted in the slot of the leader may check at once", async () => {
  const origin = startOrigin();
  cleanups.push(() => origin.stop());
  const { board, all } = await threads(origin.port);
  const first = checkingWorker(board) ?? -1;
  all[first]?.terminate();
  // As the supervisor does before it starts another thread in that slot.
  board.forgetWorker(first);
  const before = origin.requests.length;
  await eventually(() => checkingWorker(board) !== null && checkingWorker(board) !== first);
  await origin.untilRequests(before + 1);
});
