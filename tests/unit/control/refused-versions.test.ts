// Versions that are prepared and discarded leave the rows of targets, routes and listeners as they were.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { TargetBoardRows } from "../../../src/control/health/target-board-rows.ts";
import { SeriesRows } from "../../../src/observe/metrics/series-rows.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import type { Compiled } from "../../../src/snapshot/compile-context.ts";
import { ObservedRollout, type Rollout } from "../../../src/snapshot/rollout.ts";
import { seedOfRun } from "../../support/random.ts";
import { compiled, configOf, listener, route, service, target } from "./fixture.ts";

interface Names {
  readonly services: readonly string[];
  readonly routes: readonly string[];
  readonly listeners: readonly string[];
  readonly limit: number;
}

const first: Names = { services: ["a"], routes: ["a"], listeners: ["web"], limit: 0 };

const snapshotOf = ({ services, routes, listeners, limit }: Names, previous: Compiled | null) =>
  compiled(
    configOf({
      services: services.map((id) => service(id)),
      targets: services.map((id) => target(`${id}-1`, { service_id: id, host: "10.0.0.1" })),
      routes: routes.map((id) =>
        route(id, { hosts: [`${id}.test`], service_id: services[0] ?? null }),
      ),
      listeners: listeners.map((id, index) =>
        listener(id, { port: 8000 + index, max_in_flight_requests: limit }),
      ),
    }),
    previous,
  );

function scene({ capacity = 20 } = {}) {
  const board = TargetBoard.create(1, { capacity });
  const metrics = TrafficMetrics.create(1, { capacity: 10 });
  const targetMetrics = TrafficMetrics.create(1, { capacity: 10 });
  const workers: Rollout = {
    prepare: async () => [],
    activate: async () => {},
    discard: async () => {},
    status: () => ({ workers: 1, ready: 1, revision: 1 }),
  };
  const served = snapshotOf(first, null);
  const clock = { now: () => 0 };
  const common = { clock, served: served.snapshot };
  const observers = [
    new TargetBoardRows(board, served.snapshot),
    new SeriesRows({ ...common, metrics, of: "traffic" }),
    new SeriesRows({ ...common, metrics: targetMetrics, of: "targets" }),
  ];
  const rollout = new ObservedRollout(workers, observers, served.snapshot);
  return {
    board,
    rollout,
    prepare: (names: Names) => {
      const { snapshot } = snapshotOf(names, served);
      return { snapshot, prepared: rollout.prepare(snapshot) };
    },
    bytes: () =>
      [board.buffer, metrics.memory.index, targetMetrics.memory.index].map((buffer) =>
        Bun.hash(new Uint8Array(buffer)),
      ),
  };
}

const names = fc.record({
  services: fc.subarray(["a", "b", "c"], { minLength: 1 }),
  routes: fc.subarray(["a", "b", "c"]),
  listeners: fc.subarray(["web", "more"]),
  limit: fc.integer({ min: 0, max: 1 }),
});

test("random versions that are discarded write nothing", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(names, { minLength: 1, maxLength: 4 }), async (all) => {
      const { rollout, prepare, bytes } = scene();
      const before = bytes();
      for (const each of all) {
        const { snapshot, prepared } = prepare(each);
        await prepared;
        expect(bytes()).toEqual(before);
        await rollout.discard(snapshot.revision);
        expect(bytes()).toEqual(before);
      }
    }),
    { seed: seedOfRun(), numRuns: 50 },
  );
});

test("a version for which there is no room is rejected before it writes anything", async () => {
  // The service, its target and the listener that are served.
  const { prepare, bytes, board } = scene({ capacity: 4 });
  const before = bytes();
  const { prepared } = prepare({ ...first, services: ["a", "b"] });
  await expect(prepared).rejects.toThrow("there is no room for so many targets and services: 4");
  expect(bytes()).toEqual(before);
  expect(board.inUse).toBe(3);
});

test("the objects of a version have their rows when the workers activate it", async () => {
  const { rollout, prepare, board } = scene();
  const all = { services: ["a", "b"], routes: ["a"], listeners: ["web", "more"], limit: 5 };
  const { snapshot, prepared } = prepare(all);
  await prepared;
  await rollout.activate(snapshot.revision);
  const keys = ["a", "a-1", "b", "b-1", "listener web", "requests of web", "requests of more"];
  expect(keys.filter((key) => board.findRow(key) === null)).toEqual([]);
});
