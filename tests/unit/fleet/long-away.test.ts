// A node that was away for so long that the log has lost the entries which it needs.
import { afterEach, expect, test } from "bun:test";
import type { Fact } from "../../../src/model/fact.ts";
import { serviceOf } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

const nodes: TestNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
});

function scene() {
  const source = new MemorySource();
  const [first, second] = ["n1", "n2"].map((name) => new TestNode(name, source, 0)) as [
    TestNode,
    TestNode,
  ];
  nodes.push(first, second);
  return { source, first, second };
}

const create = (node: TestNode, name: string) =>
  node.change((draft) => {
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf(name), ...identity });
  });

const record = (node: TestNode, ...facts: readonly Fact[]) =>
  node.changes.record(() => ({ value: null, facts }));

const token = (letter: string): Fact => ({
  kind: "admin_token",
  token: { token_hash: letter.repeat(64), created_at: "2026-03-01T12:00:00.000Z" },
});

/** The log of a node has nothing but its state. */
function prune(source: MemorySource, node: TestNode): void {
  source.newestWhole = node.whole();
  source.pruned = source.newestWhole.position;
}

test("it takes facts that were recorded without a change of the configuration", async () => {
  const { source, first, second } = scene();
  await create(first, "a");
  await second.changes.follow();
  for (const letter of ["b", "c"]) await record(first, token(letter));
  prune(source, first);
  const seen: Fact[] = [];
  second.changes.onFact((fact) => void seen.push(fact));
  await second.changes.follow();
  expect(second.store.mark()).toEqual(first.store.mark());
  expect(second.store.facts()).toContainEqual(token("c"));
  expect(seen).toContainEqual(token("c"));
  await create(second, "d");
  await first.changes.follow();
  expect(first.store.load().config).toEqual(second.store.load().config);
});

test("a change in doubt whose place the log has lost blocks nothing", async () => {
  const { source, first, second } = scene();
  await create(first, "a");
  await second.changes.follow();
  source.fault = "request";
  const { idAt } = source;
  source.idAt = async () => {
    throw new Error("the database is away");
  };
  expect(create(second, "in doubt")).rejects.toMatchObject({ status: 504 });
  await create(second, "in doubt").catch(() => undefined);
  source.idAt = idAt;
  source.fault = "none";
  for (const name of ["b", "c", "d"]) await create(first, name);
  prune(source, first);
  // As after the removal of the entries below the state of the fleet.
  source.idAt = async (position) =>
    position <= source.pruned ? null : await idAt.call(source, position);
  await second.changes.follow();
  expect([...second.config.services.values()].map(({ name }) => name)).toEqual([
    ...["a", "b", "c", "d"],
  ]);
  await create(second, "e");
});

test("entries of another history of the same fleet are not applied, though they are signed", async () => {
  const { source, first, second } = scene();
  await create(first, "a");
  await second.changes.follow();
  // Two histories from here on, as after the restore of a backup.
  await create(first, "kept");
  const [begin, kept] = source.entries.splice(0);
  source.entries.push(begin!);
  await create(second, "lost");
  await create(second, "of the lost history");
  const [, , tail] = source.entries.splice(0);
  source.entries.push(begin!, kept!, tail!);
  // Without the entry that this node has, its id says nothing.
  source.pruned = 2;
  expect(first.changes.follow()).rejects.toMatchObject({ state: "diverged" });
  await first.changes.follow().catch(() => undefined);
  expect([...first.config.services.values()].map(({ name }) => name)).toEqual(["a", "kept"]);
});

test.each([
  { why: "a later revision", revision: 9 },
  { why: "the same revision", revision: 5 },
  { why: "an earlier revision", revision: 3 },
])(
  "a state of another history is taken when it is decided, as $why, and what is lost is copied first",
  async ({ revision }) => {
    const { source, first, second } = scene();
    await create(first, "a");
    await second.changes.follow();
    const begin = source.entries[0]!;
    for (const name of ["lost", "lost as well", "and this"]) await create(second, name);
    expect(second.changes.revision).toBe(5);
    source.entries.splice(0);
    // Up to the position of the decision.
    source.entries.push(...Array.from({ length: 5 }, () => begin));
    const names = () => [...second.config.services.values()].map(({ name }) => name);
    // The state of the fleet alone, as it is written for nodes that join, takes nothing back.
    source.newestWhole = { ...first.whole(), position: 5 };
    source.pruned = 5;
    await second.changes.follow().catch(() => undefined);
    expect([names().length, second.copies]).toEqual([4, []]);
    source.newestWhole = first.whole({ position: 5, revision });
    await second.changes.follow();
    expect([names(), second.copies, second.changes.revision]).toEqual([["a"], [4], revision]);
    expect(second.store.load()).toMatchObject({ revision });
    await first.changes.follow();
    await create(second, "next");
    await first.changes.follow();
    expect(first.store.load().config).toEqual(second.store.load().config);
    // Nothing of the node that decided was lost.
    expect(first.copies).toEqual([]);
  },
);
