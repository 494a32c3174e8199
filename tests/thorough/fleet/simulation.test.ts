// The simulation of large fleets: repeatable, with all nodes serving, and with the load that its constants say.
import { expect, test } from "bun:test";
import { lineOf, type FleetConstants } from "../../bench/fleet-constants.ts";
import { type Scene, simulate, simulateFaults } from "../../bench/fleet-scenes.ts";

const statement = { serverMs: 0.2, clientMs: 0.1 };

const constants: FleetConstants = {
  statements: {
    append: statement,
    after: statement,
    beat: statement,
    lease: statement,
    nodes: statement,
  },
  commitWaitMs: [1, 2, 3],
  perListener: { commitMs: 0.02, wakeMs: 0.02 },
  perRow: { serverMs: 0.001, clientMs: 0.005 },
  change: { writerMs: [6, 7, 8], writerCpuMs: 6, followerCpuMs: 4 },
  idleCpuShare: 0.02,
  backendBytes: 4e6,
};

const flat: Scene = { nodes: 12, relays: 0, changes: 5, isOneMachine: false, seed: 7 };
const tiers: Scene = { ...flat, nodes: 24, relays: 4 };

test("the same seed gives the same times, and every change reaches all nodes", async () => {
  const before = Date.now();
  const first = await simulate(tiers, constants);
  expect(await simulate(tiers, constants)).toEqual(first);
  expect(first.refused).toBe(0);
  expect(first.liveMs).toHaveLength(5);
  expect(first.liveMs.every(Number.isFinite)).toBe(true);
  // The clocks are real again.
  expect(Date.now() - before).toBeWithin(0, 60_000);
});

test("without relays each node costs the database two heartbeats and two looks a second and a copy of each entry", async () => {
  const { statementsPerSecond, backends, largeBytes } = await simulate(flat, constants);
  expect(statementsPerSecond).toBeCloseTo(12 * 4, -1);
  expect(backends).toBe(36);
  // The node that wrote it has it.
  expect(Math.round(largeBytes / 1e6)).toBe(11);
});

test("with relays only these cost the database something", async () => {
  const { backends, largeBytes } = await simulate(tiers, constants);
  expect(backends).toBe(12);
  expect(Math.round(largeBytes / 1e6)).toBe(4);
});

test("leaves of a silent relay go on with another one, and a slow leaf delays the reply alone", async () => {
  const { movedMs, slowReplyMs, slowLiveMs } = await simulateFaults(tiers, constants);
  expect(movedMs).toHaveLength(5);
  expect(movedMs.every((ms) => ms > 1000 && ms < 5000)).toBe(true);
  expect(slowReplyMs).toBeGreaterThanOrEqual(2000);
  expect(slowLiveMs).toBeLessThan(200);
});

test("a line through points on it has its slope and its base", () => {
  const { slope, base } = lineOf([10, 50, 250].map((x) => [x, 3 + x / 4] as const));
  expect([slope, base]).toEqual([expect.closeTo(0.25, 9), expect.closeTo(3, 9)]);
});
