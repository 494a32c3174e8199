// Overrides of target health over two nodes with one log: they hold on both, also after a restart, and end together.
import { afterEach, expect, test } from "bun:test";
import { OlderNodes } from "../../../src/control/change-contract.ts";
import type { FleetView } from "../../../src/control/fleet-view.ts";
import { HealthOverrides } from "../../../src/control/health/overrides.ts";
import { local } from "../../../src/control/principal.ts";
import type { StoredOverride } from "../../../src/model/fact.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { readHealth } from "../../../src/shared-memory/target-health.ts";
import { HealthOverrideRow } from "../../../src/store/health-overrides.ts";
import { serviceOf, targetOf } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

const fleet = {} as FleetView;
const service = serviceOf("s");
const [target, other] = [targetOf(service, 1), targetOf(service, 2)];

const nodes: TestNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
});

/** Overrides of a node over a board of its own, from what its database has. */
function overridesOf(node: TestNode) {
  const board = TargetBoard.create(1);
  const overrideStore = node.store.with((context) => new HealthOverrideRow(context));
  const overrides = new HealthOverrides({
    board,
    changes: node.changes,
    clock: { now: () => Date.now() },
    fleet,
    overrideStore,
  });
  const see = ({ id }: { id: string }) => {
    const row = board.findRow(id);
    return row === null ? null : (readHealth(board, row, Date.now()).override?.state ?? null);
  };
  const stored = () => Object.fromEntries(overrideStore.load());
  return { board, overrides, see, stored };
}

async function scene() {
  const source = new MemorySource();
  const [first, second] = ["n1", "n2"].map((name) => new TestNode(name, source, 0)) as [
    TestNode,
    TestNode,
  ];
  nodes.push(first, second);
  await first.change((draft) => {
    draft.put("services", service);
    for (const each of [target, other]) draft.put("targets", each);
  });
  await second.changes.follow();
  return { source, first, second, one: overridesOf(first), two: overridesOf(second) };
}

const DOWN: StoredOverride = { state: "unhealthy", until: null };

test("an override holds on all nodes, after the restart of one, and until it is removed", async () => {
  const { first, second, one, two } = await scene();
  await one.overrides.set(target.id, DOWN, local);
  expect([one.see(target), two.see(target)]).toEqual(["unhealthy", null]);
  await second.changes.follow();
  expect([two.see(target), two.see(other)]).toEqual(["unhealthy", null]);
  second.restart();
  const restarted = overridesOf(second);
  expect(restarted.see(target)).toBe("unhealthy");
  await restarted.overrides.set(target.id, null, local);
  await first.changes.follow();
  expect([one.see(target), restarted.see(target)]).toEqual([null, null]);
  expect([one.stored(), restarted.stored()]).toEqual([{}, {}]);
});

test("one with a time does not come back after it, and is forgotten with the next one", async () => {
  const { first, one } = await scene();
  const ended = new Date(Date.now() - 1).toISOString();
  await one.overrides.set(target.id, { state: "unhealthy", until: ended }, local);
  first.restart();
  const again = overridesOf(first);
  expect(again.see(target)).toBeNull();
  await again.overrides.set(other.id, DOWN, local);
  expect(again.stored()).toEqual({ [other.id]: DOWN });
});

test("one that has ended when a node gets it ends the one before it there", async () => {
  const { second, one, two } = await scene();
  await one.overrides.set(target.id, DOWN, local);
  await second.changes.follow();
  expect(two.see(target)).toBe("unhealthy");
  const until = new Date(Date.now() - 1).toISOString();
  await one.overrides.set(target.id, { state: "healthy", until }, local);
  await second.changes.follow();
  expect([one.see(target), two.see(target)]).toEqual([null, null]);
});

test("it ends on all nodes with the change that takes the target out of use", async () => {
  const { first, second, one, two } = await scene();
  await one.overrides.set(target.id, DOWN, local);
  await second.changes.follow();
  await second.change((draft) => draft.put("targets", { ...target, enabled: false }));
  await first.changes.follow();
  expect([one.stored(), two.stored()]).toEqual([{}, {}]);
  expect(two.overrides.set(target.id, DOWN, local)).rejects.toThrow("takes no traffic");
  // Both come as one change, after which there is no target.
  await two.overrides.set(other.id, DOWN, local);
  await second.change((draft) => draft.remove("targets", other.id));
  const inUse = one.board.inUse;
  await first.changes.follow();
  expect([one.board.inUse - inUse, one.stored()]).toEqual([0, {}]);
});

test("a node that was away for long has the overrides of the others, and not those that were removed", async () => {
  const { source, first, second, one, two } = await scene();
  await one.overrides.set(target.id, DOWN, local);
  await second.changes.follow();
  await one.overrides.set(target.id, null, local);
  await one.overrides.set(other.id, DOWN, local);
  source.newestWhole = first.whole();
  source.pruned = source.newestWhole.position;
  await second.changes.follow();
  expect([two.see(target), two.see(other)]).toEqual([null, "unhealthy"]);
  expect(two.stored()).toEqual({ [other.id]: DOWN });
});

test("beside an older node only the one that is asked has it, and says so", async () => {
  const { source, first, second, one, two } = await scene();
  const entries = source.entries.length;
  first.onNeed = ({ because }) => {
    throw new OlderNodes(because, [{ name: "n2", version: "0.0.9" }]);
  };
  expect(await one.overrides.set(target.id, DOWN, local)).toBe(
    "overridden on this node only, because node n2 runs 0.0.9",
  );
  await second.changes.follow();
  expect([one.see(target), two.see(target)]).toEqual(["unhealthy", null]);
  expect(source.entries.length).toBe(entries);
  // It hinders no change of the target.
  await first.change((draft) => draft.put("targets", { ...target, enabled: false }));
});
