// What a node says of facts that are in the log, but not in its own database.
import { expect, test } from "bun:test";
import { StorageError } from "../../../src/model/error.ts";
import type { Fact } from "../../../src/model/fact.ts";
import { serviceOf } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

test("facts in the log were recorded, though the own disk is full, and are stored when it is not", async () => {
  const source = new MemorySource();
  const node = new TestNode("n1", source, 0);
  const seen: Fact[] = [];
  node.changes.onFact((fact) => void seen.push(fact));
  const created_at = "2026-03-01T12:00:00.000Z";
  const fact: Fact = {
    kind: "admin_token",
    token: { token_hash: "a".repeat(64), created_at },
  };
  node.isFull = true;
  // The other nodes have it: whoever asked for it needs the result.
  expect(await node.changes.record(() => ({ value: "made", facts: [fact] }))).toBe("made");
  expect([source.entries.length, seen]).toEqual([1, [fact]]);
  expect(node.store.mark()).toBeNull();
  node.isFull = false;
  await node.changes.follow();
  expect(node.store.mark()?.position).toBe(1);
  expect(node.store.facts()).toContainEqual(fact);
  expect(seen).toEqual([fact]);
  node.close();
});

const create = (node: TestNode, name: string) =>
  node.change((draft) => {
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf(name), ...identity });
  });

test("a change that comes second on a full disk gets the 503 of the disk, not a 500, and is not made", async () => {
  const source = new MemorySource();
  const [first, full] = [new TestNode("n1", source, 0), new TestNode("n2", source, 0)];
  await create(first, "one");
  full.isFull = true;
  const refused = await create(full, "two").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StorageError);
  expect(source.entries).toHaveLength(1);
  full.isFull = false;
  await create(full, "two");
  expect(source.entries).toHaveLength(2);
  for (const node of [first, full]) node.close();
});
