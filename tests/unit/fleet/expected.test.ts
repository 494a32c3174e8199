// What a request expects of the fleet for its change, checked at the commit, and what it learns.
import { afterEach, expect, test } from "bun:test";
import { OlderNodes } from "../../../src/control/change-contract.ts";
import type { Draft } from "../../../src/control/draft.ts";
import type { FleetWrite } from "../../../src/control/fleet-view.ts";
import { type Actor, local } from "../../../src/control/principal.ts";
import type { FormatNeed } from "../../../src/fleet/entry-format.ts";
import { isOlder } from "../../../src/fleet/node-row.ts";
import { SourceUnreachable } from "../../../src/fleet/source.ts";
import { ApiError } from "../../../src/model/error.ts";
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

function identityOf(draft: Draft) {
  const now = draft.stamp();
  return { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
}

function scene() {
  const source = new MemorySource();
  const node = new TestNode("n1", source, 0);
  nodes.push(node);
  const create = (name: string) =>
    node.change((draft) => draft.put("services", { ...serviceOf(name), ...identityOf(draft) }));
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

test("so does what a caller records beside changes, and not what the gateway records itself", async () => {
  const { source, node } = scene();
  const facts = [{ kind: "cache_purged", plugin_id: null, which: { by: "all" } }] as const;
  const record = (by?: Actor) => node.changes.record(() => ({ value: null, facts }), by);
  node.expects = write(null);
  await record();
  expect(node.expects.committed).toBeNull();
  await record(local);
  expect(node.expects.committed).toMatchObject({ position: 2 });
  node.isAlone = true;
  node.expects = write("all");
  expect(record(local)).rejects.toMatchObject({ status: 409 });
  await record(local).catch(() => undefined);
  expect([source.entries.length, node.expects.committed]).toEqual([2, null]);
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

test("a change that loses its place while the database goes away says that nothing was changed, and to try again", async () => {
  const { source, node, create } = scene();
  const other = new TestNode("n2", source, 0);
  nodes.push(other);
  await create("a");
  const { after } = source;
  source.after = async () => {
    throw new SourceUnreachable();
  };
  const change = other.change((draft) => {
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf("b"), ...identity });
  });
  const refused = await change.then(
    () => null,
    (error: unknown) => error,
  );
  source.after = after;
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({ status: 503 });
  expect((refused as ApiError).message).toEndWith("nothing was changed");
  expect(source.entries).toHaveLength(1);
  expect(node.config.services.size).toBe(1);
});

test("what an older node does not know is refused before it is appended or stored; other changes are not asked about", async () => {
  const { source, node, create } = scene();
  const asked: FormatNeed[] = [];
  node.onNeed = (need) => {
    asked.push(need);
    throw new OlderNodes(need.because, [{ name: "n2", version: "0.0.9" }]);
  };
  await create("a");
  const change = (absent_after: number) =>
    node.change((draft) => {
      const { settings } = draft.config;
      const fleet = { ...settings.fleet, absent_after };
      draft.putSingleton("settings", { ...settings, fleet, updated_at: draft.stamp() });
    });
  await change(86_400_000);
  expect(asked).toEqual([]);
  const refusal = await change(60_000).catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    status: 409,
    message:
      "node n2 runs 0.0.9, which does not know settings.fleet.absent_after; upgrade it first; nothing was changed",
  });
  expect(asked).toEqual([{ format: 2, because: ["settings.fleet.absent_after"] }]);
  expect([source.entries.length, node.store.load().revision]).toEqual([2, 3]);
  expect(node.changes.warnings()).toEqual([]);
  node.onNeed = () => {};
  await change(60_000);
  expect(source.entries.map(({ format }) => format)).toEqual([1, 1, 2]);
});

test("a node counts as older until it has been away for too long, and not when it has stopped already", () => {
  const limits = { format: 2, absentMs: 60_000 };
  const node = { formatMax: 1, state: "serving", seenMsAgo: 60_000 };
  expect(isOlder(node, limits)).toBe(true);
  expect(isOlder({ ...node, seenMsAgo: 60_001 }, limits)).toBe(false);
  expect(isOlder({ ...node, formatMax: 2 }, limits)).toBe(false);
  expect(isOlder({ ...node, state: "outdated" }, limits)).toBe(false);
});

test("a change that is refused after its turn has begun ends the turn", async () => {
  const { source, node, create } = scene();
  await create("first");
  const other = new TestNode("n2", source, 0);
  nodes.push(other);
  await other.changes.follow();
  let tries = 0;
  const facts = [{ kind: "sessions_ended", ids: [] }] as const;
  const refused = node.change(async (draft) => {
    if (++tries > 3) throw new ApiError(409, "the name is taken");
    draft.put("services", { ...serviceOf("second"), ...identityOf(draft) });
    // The other node is faster each time.
    await other.changes.record(() => ({ value: null, facts }));
  });
  await expect(refused).rejects.toThrow("the name is taken");
  expect(source.turns).toEqual(["n1 begins", "n1 ends"]);
});
