// What a request expects of the fleet for its change, checked at the commit, and what it learns.
import { afterEach, expect, test } from "bun:test";
import type { FleetWrite } from "../../../src/control/fleet-view.ts";
import { serviceOf } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

const nodes: TestNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
});

const write = (requires: FleetWrite["requires"]): FleetWrite => ({
  requires,
  waitMs: undefined,
  committed: null,
});

function scene() {
  const source = new MemorySource();
  const node = new TestNode("n1", source, 0);
  nodes.push(node);
  const create = (name: string) =>
    node.change((draft) => {
      const now = draft.stamp();
      const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
      draft.put("services", { ...serviceOf(name), ...identity });
    });
  return { source, node, create };
}

test("a change learns its own position in the log", async () => {
  const { node, create } = scene();
  await create("before");
  node.expects = write(null);
  await create("a");
  expect(node.expects.committed?.position).toBe(2);
  node.expects = write(null);
  await node.change(() => {});
  expect(node.expects.committed).toBeNull();
});

test("too few nodes at the commit: nothing is appended or stored, and the store has no problem", async () => {
  const { source, node, create } = scene();
  node.isAlone = true;
  node.expects = write("all");
  expect(create("a")).rejects.toMatchObject({ status: 409 });
  await create("a").catch(() => undefined);
  expect([source.entries.length, node.config.services.size]).toEqual([0, 0]);
  expect(node.expects.committed).toBeNull();
  expect(node.changes.warnings()).toEqual([]);
  node.expects = write(null);
  await create("a");
  expect(source.entries.length).toBe(1);
});

test("between its storage and its activation a change is known to be not served yet", async () => {
  const { node, create } = scene();
  await create("a");
  const { store } = node;
  const write = store.write.bind(store);
  const turns: { readonly stored: number; readonly isServable: boolean }[] = [];
  store.write = (entries) => {
    write(entries);
    const look = (left: number) => {
      const stored = store.mark()?.position ?? 0;
      const isServable = node.served.at(-1)! >= node.fleetStore.revision;
      turns.push({ stored, isServable });
      if (left > 0 && node.served.length === 1) queueMicrotask(() => look(left - 1));
    };
    queueMicrotask(() => look(20));
  };
  await create("b");
  expect(turns.length).toBeGreaterThan(1);
  for (const { isServable } of turns.slice(0, -1)) expect(isServable).toBe(false);
  expect(node.served.at(-1)).toBe(node.fleetStore.revision);
});
