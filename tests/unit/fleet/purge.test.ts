// Purges over two nodes with one log: a node counts as having purged when its caches are.
import { afterEach, expect, test } from "bun:test";
import { CachePurge, type PurgeCaches } from "../../../src/control/cache-purge.ts";
import { ChallengeBoard } from "../../../src/acme/challenge-board.ts";
import { OlderNodes } from "../../../src/control/change-contract.ts";
import type { FleetView } from "../../../src/control/fleet-view.ts";
import { local } from "../../../src/control/principal.ts";
import { eventually } from "../../support/poll.ts";
import { serviceOf } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

const fleet = {} as FleetView;

const nodes: TestNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
});

/** A node whose caches do what a test wants, and note it beside the versions that it serves. */
function nodeOf(name: string, source: MemorySource, purgeCaches: PurgeCaches = async () => 5) {
  const node = new TestNode(name, source, 0);
  nodes.push(node);
  const steps: string[] = [];
  node.changes.onServed(({ revision }) => steps.push(`served ${revision}`));
  const caches = new CachePurge({
    changes: node.changes,
    audit: { record() {} },
    fleet,
    purgeCaches: (plugin, which, how) => {
      steps.push(`${how.soft ? "soft " : ""}purge ${JSON.stringify(which)}`);
      return purgeCaches(plugin, which, how);
    },
  });
  return { node, caches, steps };
}

const ALL = 'purge {"by":"all"}';

const create = (node: TestNode, name: string) =>
  node.change((draft) => {
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf(name), ...identity });
  });

test("all nodes purge what one is asked to, and the reply counts the responses of that one", async () => {
  const source = new MemorySource();
  const [first, second] = [nodeOf("n1", source), nodeOf("n2", source)];
  expect(await first.caches.purge({ prefix: "Shop.test/a/" }, local)).toEqual({ purged: 5 });
  expect(second.steps).toEqual([]);
  await second.node.changes.follow();
  const purged = ['purge {"by":"prefix","value":"shop.test/a/"}'];
  expect([first.steps, second.steps]).toEqual([purged, purged]);
});

test("a refused purge is an entry of nobody", async () => {
  const source = new MemorySource();
  const { caches, steps } = nodeOf("n1", source);
  expect(caches.purge({ plugin_id: "none" }, local)).rejects.toThrow(
    'plugin "none" does not exist',
  );
  source.fault = "unreachable";
  expect(caches.purge({}, local)).rejects.toMatchObject({ status: 503 });
  await eventually(() => source.fault === "none");
  expect([source.entries.length, steps]).toEqual([0, []]);
});

test("a node does not count as having purged before its caches are", async () => {
  const source = new MemorySource();
  const first = nodeOf("n1", source);
  let isSettled = 0;
  const gate = Promise.withResolvers<number>();
  const { node, steps } = nodeOf("n2", source, () => gate.promise);
  node.changes.onSettled(() => isSettled++);
  await first.caches.purge({}, local);
  const following = node.changes.follow();
  await eventually(() => steps.length === 1);
  expect([steps, node.changes.isSettled, isSettled]).toEqual([[ALL], false, 0]);
  gate.resolve(0);
  await following;
  expect([node.changes.isSettled, isSettled]).toEqual([true, 1]);
});

test("neither does the node that was asked", async () => {
  const source = new MemorySource();
  const gate = Promise.withResolvers<number>();
  const { caches, node, steps } = nodeOf("n1", source, () => gate.promise);
  /** In the steps after the one in which the entry is in its database. */
  const seen: boolean[] = [];
  const { write } = node.store;
  node.store.write = (entries) => {
    write.call(node.store, entries);
    for (let step = 0, next = Promise.resolve(); step < 20; step++)
      next = next.then(() => void seen.push(node.changes.isSettled));
  };
  const purging = caches.purge({}, local);
  await eventually(() => steps.length === 1 && seen.length === 20);
  gate.resolve(7);
  expect(await purging).toEqual({ purged: 7 });
  await eventually(() => node.changes.isSettled);
  expect(seen).toEqual(Array.from({ length: 20 }, () => false));
});

test("a soft purge is a soft purge on all nodes", async () => {
  const source = new MemorySource();
  const [first, second] = [nodeOf("n1", source), nodeOf("n2", source)];
  expect(await first.caches.purge({ tag: "news", soft: true }, local)).toEqual({ purged: 5 });
  await second.node.changes.follow();
  const purged = ['soft purge {"by":"tag","value":"news"}'];
  expect([first.steps, second.steps]).toEqual([purged, purged]);
});

test("what came with a change is purged after its activation: the version before may fill the caches until then", async () => {
  const source = new MemorySource();
  const [first, second] = [nodeOf("n1", source), nodeOf("n2", source)];
  const { activate } = watchActivation(second);
  await create(first.node, "a");
  await first.caches.purge({}, local);
  await create(first.node, "b");
  await second.node.changes.follow();
  await eventually(() => second.node.changes.isSettled);
  // One version for all three entries.
  expect(second.steps.filter((step) => step === "activated" || step === ALL)).toEqual([
    "activated",
    ALL,
  ]);
  expect(activate.count).toBe(1);
});

/** Notes when the workers have activated a version. */
function watchActivation({ node, steps }: ReturnType<typeof nodeOf>) {
  const activate = { count: 0 };
  const push = node.served.push.bind(node.served);
  node.served.push = (revision) => {
    activate.count++;
    steps.push("activated");
    return push(revision);
  };
  return { activate };
}

test("a node that was away for so long that the log has lost entries purges everything", async () => {
  const source = new MemorySource();
  const [first, second] = [nodeOf("n1", source), nodeOf("n2", source)];
  await create(first.node, "a");
  await second.node.changes.follow();
  await first.caches.purge({ tag: "news" }, local);
  source.newestWhole = first.node.whole();
  source.pruned = source.newestWhole.position;
  await second.node.changes.follow();
  expect(second.steps.filter((step) => step.startsWith("purge"))).toEqual([ALL]);
});

test("a node does not count as serving the challenge responses of another while a worker does not", async () => {
  const proofs = { http: [{ token: "token", answer: "token.thumbprint" }], tls: [] };
  const failed: unknown[] = [];
  let shown: unknown = null;
  const board = new ChallengeBoard(
    async (challenges) => {
      if (failed.length < 2) throw new Error("a worker hangs");
      shown = challenges.http;
    },
    (error) => failed.push(error),
  );
  await board.observe("n1", proofs);
  expect([failed.length, shown]).toEqual([2, proofs.http]);
});

test("beside an older node only the one that is asked purges, and says so", async () => {
  const source = new MemorySource();
  const { node, caches, steps } = nodeOf("n1", source);
  node.onNeed = ({ because }) => {
    throw new OlderNodes(because, [{ name: "n2", version: "0.0.9" }]);
  };
  expect(await caches.purge({}, local)).toEqual({
    purged: 5,
    warning: "purged on this node only, because node n2 runs 0.0.9",
  });
  expect([steps, source.entries.length]).toEqual([[ALL], 0]);
});
