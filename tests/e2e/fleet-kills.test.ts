// Nodes of a fleet and its database that die at any moment: no answered change is lost, and all nodes end with one state.
// SLUICE_FLEET_KILLS (5) is the number of random kills; with 100 or more each node dies at each step of a change.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { attempt, checkNames, startWriters } from "../support/fleet-writers.ts";
import { create, settled, TestFleet } from "../support/fleet.ts";
import { needs } from "../support/needs.ts";
import { Random, seedOfRun } from "../support/random.ts";

const { afterEach, test } = needs("executable", "postgres");

const KILLS = Number(process.env["SLUICE_FLEET_KILLS"] ?? 5);
const isFull = KILLS >= 100;
const random = new Random(seedOfRun());

const cleanups = cleanupsOf(afterEach);

/** Steps of a change on the node that it is sent to, and whether the change is made when the node dies there. */
const OWN_STEPS = {
  before_append: false,
  after_append: true,
  after_store: true,
  after_activate: true,
} as const;

/** Steps of a change on another node. */
const FOLLOWING_STEPS = [
  "follow_after_prepare",
  "follow_after_store",
  "follow_after_activate",
] as const;

/** Three nodes, whose environment can be changed before a start. */
async function startFleet() {
  const environments = new Map<string, Record<string, string>>();
  const fleet = await TestFleet.start(3, {
    node: (name) => {
      const env = {};
      environments.set(name, env);
      return { env };
    },
  });
  cleanups.push(() => fleet.stop());
  /** Starts a node again, which then dies at `step`; null: it lives. */
  const arm = async (index: number, step: string | null) => {
    const env = environments.get(`n${index + 1}`) ?? {};
    if (step === null) delete env["SLUICE_FAIL_POINT"];
    else env["SLUICE_FAIL_POINT"] = step;
    await fleet.nodes[index]?.restart();
  };
  return { fleet, nodes: fleet.nodes, arm };
}

/** In a short run each step on one node, in a full one on each. */
const nodesFor = (step: number): readonly number[] => (isFull ? [0, 1, 2] : [step % 3]);

test(
  "a node that dies at any step of its own change has made it on all nodes, or on none",
  async () => {
    const { nodes, arm } = await startFleet();
    const expected: string[] = [];
    for (const [number, [step, isMade]] of Object.entries(OWN_STEPS).entries()) {
      for (const index of nodesFor(number)) {
        const node = nodes[index]!;
        await arm(index, step);
        const name = `${step} on n${index + 1}`;
        expect([step, await attempt(node, name)]).toEqual([step, null]);
        await node.exited();
        if (isMade) expected.push(name);
        await arm(index, null);
        expect(await settled(nodes)).toEqual(expected);
      }
    }
  },
  isFull ? 300_000 : 90_000,
);

test(
  "a node that dies at any step of another node's change has it when it is back",
  async () => {
    const { nodes, arm } = await startFleet();
    const expected: string[] = [];
    for (const [number, step] of FOLLOWING_STEPS.entries()) {
      for (const index of nodesFor(number)) {
        const node = nodes[index]!;
        await arm(index, step);
        const name = `${step} on n${index + 1}`;
        const reply = await create(nodes[(index + 1) % 3]!, name);
        expect([reply.status, reply.nodes]).toEqual([200, "2/3"]);
        await node.exited();
        expected.push(name);
        await arm(index, null);
        expect(await settled(nodes)).toEqual(expected);
        expect((await create(node, `${name} afterwards`)).status).toBe(200);
        expected.push(`${name} afterwards`);
      }
    }
  },
  isFull ? 300_000 : 90_000,
);

test(
  "nodes killed at random moments under three writers: no answered change is lost, and all states are equal",
  async () => {
    const { nodes } = await startFleet();
    const writers = startWriters(nodes);
    for (let kill = 0; kill < KILLS; kill++) {
      await writers.answers(random.between(5, 25));
      const node = nodes[kill % 3]!;
      await node.kill9();
      await node.start();
    }
    await writers.answers(5);
    const written = await writers.stop();
    checkNames(await settled(nodes), written);
    expect(written.answered.length).toBeGreaterThan(5 * KILLS);
  },
  60_000 + KILLS * 8000,
);

test(
  "the database killed under three writers: no answered change is lost, and all states are equal",
  async () => {
    const { fleet, nodes } = await startFleet();
    const writers = startWriters(nodes);
    for (let kill = 0; kill < Math.max(3, KILLS / 5); kill++) {
      await writers.answers(random.between(10, 30));
      await fleet.postgres.kill();
      await fleet.postgres.start();
    }
    await writers.answers(10);
    const written = await writers.stop();
    checkNames(await settled(nodes), written);
    const counted = await fleet.query(
      (sql) => sql`select count(*)::int as count from sluice.entry`,
    );
    const [{ position }] = await fleet.query((sql) => sql`select position::int from sluice.head`);
    expect(counted[0].count).toBe(position);
  },
  60_000 + KILLS * 8000,
);
