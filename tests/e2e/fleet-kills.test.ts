// Nodes of a fleet and its database that die at any moment: no answered change is lost, and all nodes end with one state.
// SLUICE_FLEET_KILLS (5) is the number of random kills; with 100 or more each node dies at each step of a change.
import { expect } from "bun:test";
import { create, type Reply, settled, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterEach, test } = needs("executable", "postgres");

const KILLS = Number(process.env["SLUICE_FLEET_KILLS"] ?? 5);
const isFull = KILLS >= 100;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

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

/** Null when the connection ended without a reply. */
const attempt = (node: Gateway, name: string): Promise<Reply | null> =>
  create(node, name).catch(() => null);

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

/** A writer at each node until `stop`, which returns what was answered, and what was not. */
function startWriters(nodes: readonly Gateway[]) {
  const [answered, open, refused]: [string[], string[], Set<string>] = [[], [], new Set()];
  let isOver = false;
  const write = async (node: Gateway, index: number) => {
    for (let round = 0; !isOver; round++) {
      const name = `n${index + 1}-${round}`;
      const reply = await attempt(node, name);
      if (reply === null || reply.status === 504) open.push(name);
      else if (reply.status === 200) answered.push(name);
      else refused.add(name);
      // A node that is away refuses at once.
      if (reply?.status !== 200) await Bun.sleep(20);
    }
  };
  const writers = nodes.map(write);
  return {
    answered,
    stop: async () => {
      isOver = true;
      await Promise.all(writers);
      return { answered, open, refused };
    },
  };
}

/** What was answered is there, what was refused is not, and what was not answered may be. */
function checkNames(names: readonly string[], written: Awaited<ReturnType<Writers["stop"]>>): void {
  const [there, { answered, open, refused }] = [new Set(names), written];
  expect(answered.filter((name) => !there.has(name))).toEqual([]);
  expect(names.filter((name) => refused.has(name))).toEqual([]);
  expect(names.filter((name) => !answered.includes(name) && !open.includes(name))).toEqual([]);
  expect(names).toHaveLength(there.size);
}
type Writers = ReturnType<typeof startWriters>;

/** Waits until `count` more changes were answered. */
const answersOf = async ({ answered }: Writers, count: number) => {
  const goal = answered.length + count;
  await eventually(() => answered.length >= goal, { deadlineMs: 30_000 });
};

test(
  "nodes killed at random moments under three writers: no answered change is lost, and all states are equal",
  async () => {
    const { nodes } = await startFleet();
    const writers = startWriters(nodes);
    for (let kill = 0; kill < KILLS; kill++) {
      await answersOf(writers, 5 + Math.floor(Math.random() * 20));
      const node = nodes[kill % 3]!;
      await node.kill9();
      await node.start();
    }
    await answersOf(writers, 5);
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
      await answersOf(writers, 10 + Math.floor(Math.random() * 20));
      await fleet.postgres.kill();
      await fleet.postgres.start();
    }
    await answersOf(writers, 10);
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
