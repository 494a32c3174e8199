// Nodes of a fleet that stop, or that no packet reaches: the others go on without them, and they come back by themselves.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { create, isServing, namesOn, settled, statesOn, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

async function startFleet(count: number, wired = false) {
  const fleet = await TestFleet.start(count, { wired });
  cleanups.push(() => fleet.stop());
  return fleet;
}

/** A change waits 2 s for the other nodes; the rest is for a busy machine. */
const WAITED_MS = 4000;

test("a stopped node is lagging, then away, and has caught up when it goes on", async () => {
  const { nodes } = await startFleet(3);
  const [first, second, third] = nodes as [Gateway, Gateway, Gateway];
  expect((await create(first, "all")).nodes).toBe("3/3");
  second.signal("SIGSTOP");
  const lagging = await create(first, "without n2");
  expect([lagging.status, lagging.nodes, lagging.missing]).toEqual([200, "2/3", "n2;lagging"]);
  expect(lagging.ms).toBeLessThan(WAITED_MS);
  await eventually(async () => (await statesOn(third)).includes("n2 away"));
  const away = await create(third, "still without n2");
  expect([away.status, away.nodes, away.missing]).toEqual([200, "2/3", "n2;away"]);
  expect(away.ms).toBeLessThan(1000);
  second.signal("SIGCONT");
  expect(await settled(nodes)).toEqual(["all", "without n2", "still without n2"]);
  await eventually(async () => (await statesOn(first)).every(isServing));
  expect((await create(second, "all again")).nodes).toBe("3/3");
});

test("a node that no packet of the database reaches serves, refuses changes, and is back when they do", async () => {
  const { nodes, wires } = await startFleet(3, true);
  const [first, second, third] = nodes as [Gateway, Gateway, Gateway];
  expect((await create(second, "before")).nodes).toBe("3/3");
  wires[1]!.hold();
  // Nothing tells it yet: it waits for the database as long as for a slow one.
  const refused = await create(second, "in doubt");
  expect([refused.status === 503 || refused.status === 504, refused.ms < WAITED_MS]).toEqual([
    true,
    true,
  ]);
  await eventually(async () => (await create(second, "cut off")).text.includes("is cut off"));
  const atOnce = await create(second, "cut off");
  expect([atOnce.status, atOnce.ms < 500]).toEqual([503, true]);
  expect(atOnce.text).toContain("nothing was changed");
  expect(await namesOn(second)).toEqual(["before"]);
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  const others = await create(third, "without n2");
  expect([others.status, others.nodes, others.missing]).toEqual([200, "2/3", "n2;away"]);
  expect(await namesOn(second)).toEqual(["before"]);
  wires[1]!.heal();
  const names = await settled(nodes);
  // What was in doubt may have been made: the packet with it was on its way.
  expect(names.filter((name) => name !== "in doubt")).toEqual(["before", "without n2"]);
  await eventually(async () => (await statesOn(first)).every(isServing));
  expect((await create(second, "after")).nodes).toBe("3/3");
});

test("when the change's own packets are dropped, it is made on all nodes or on none", async () => {
  const { nodes, wires } = await startFleet(3, true);
  const outcomes = new Set<number>();
  const [refused, answered]: [string[], string[]] = [[], []];
  for (let round = 0; round < 3; round++) {
    const name = `round ${round}`;
    // At another moment of the change in each round.
    wires[0]!.delayMs = 20;
    const reply = create(nodes[0]!, name);
    await Bun.sleep(10 * (round + 1));
    wires[0]!.hold();
    const { status } = await reply;
    outcomes.add(status);
    if (status === 200) answered.push(name);
    if (status === 503) refused.push(name);
    wires[0]!.delayMs = 0;
    wires[0]!.heal();
    await eventually(async () => (await statesOn(nodes[0]!)).every(isServing));
    const names = await settled(nodes);
    expect(names.filter((made) => refused.includes(made))).toEqual([]);
    expect(answered.filter((made) => !names.includes(made))).toEqual([]);
  }
  expect([...outcomes].filter((status) => ![200, 503, 504].includes(status))).toEqual([]);
});

test("a slow way to the database slows changes down, and loses none", async () => {
  const { nodes, wires } = await startFleet(2, true);
  for (const wire of wires) wire.delayMs = 60;
  const names = ["a", "b", "c"];
  for (const name of names) expect((await create(nodes[0]!, name)).nodes).toBe("2/2");
  expect(await settled(nodes)).toEqual(names);
});

test("a connection that breaks during a change leaves it made on all nodes or on none", async () => {
  const { nodes, wires } = await startFleet(2, true);
  const [refused, answered]: [string[], string[]] = [[], []];
  for (let round = 0; round < 12; round++) {
    const name = `round ${round}`;
    const reply = create(nodes[0]!, name);
    await Bun.sleep(round);
    wires[0]!.cut();
    wires[0]!.heal();
    const { status } = await reply;
    if (status === 200) answered.push(name);
    if (status === 503) refused.push(name);
    await eventually(async () => (await statesOn(nodes[0]!)).every(isServing));
  }
  const names = await settled(nodes);
  expect(names.filter((made) => refused.includes(made))).toEqual([]);
  expect(answered.filter((made) => !names.includes(made))).toEqual([]);
});
