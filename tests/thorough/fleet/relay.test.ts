// Nodes behind relays, over the interface of the product alone: entries keep their order and are applied once.
import { afterEach, expect, test } from "bun:test";
import { beginningOf, oldestOf } from "../../../src/fleet/join.ts";
import { isSigned, signNode } from "../../../src/fleet/node-row.ts";
import type { Heartbeat, LogPage } from "../../../src/fleet/source.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { LeafSource, Relay } from "../../support/relay.ts";
import { openStore, serviceOf, temporaryDirectory } from "../../unit/store/fixture.ts";
import { MemoryFleet } from "../../unit/fleet/memory-fleet.ts";
import { codec, TestNode } from "../../unit/fleet/node.ts";

const nodes: TestNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
});

/** Counts what relays ask for. */
class CountedFleet extends MemoryFleet {
  /** Entries that it has sent. */
  sent = 0;

  override async after(position: number): Promise<LogPage> {
    const page = await super.after(position);
    this.sent += page.entries.length;
    return page;
  }
}

async function scene(relayCount: number, leafCount: number) {
  const fleet = new CountedFleet();
  const relays: Relay[] = [];
  for (let index = 0; index < relayCount; index++) {
    const relay = new Relay({ upstream: fleet, codec, awayMs: 60_000, freshMs: 0 });
    await relay.beat(rowOf(`r${index}`, 0));
    await relay.listen(() => {});
    relays.push(relay);
  }
  const sources = Array.from({ length: leafCount }, (_, index) => {
    const own = index % relayCount;
    const order = [...relays.slice(own), ...relays.slice(0, own)];
    return new LeafSource({ relays: order, carry: async () => {}, deadlineMs: 1_000 });
  });
  const leaves = sources.map((source, index) => {
    const leaf = new TestNode(`n${index}`, source, 0);
    nodes.push(leaf);
    return leaf;
  });
  return { fleet, relays, sources, leaves };
}

function rowOf(name: string, served: number): Heartbeat {
  const unsigned = {
    ...{ id: name, name, url: "", version: "0.1.0", formatMax: 1, stored: served, served },
    ...{ state: "serving", error: "", draining: false, clockOffsetMs: 0 },
  };
  return { ...unsigned, mac: signNode(codec, unsigned) };
}

const create = (node: TestNode, name: string) =>
  node.change((draft) => {
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf(name), ...identity });
  });

const namesOf = ({ config }: TestNode) => [...config.services.values()].map(({ name }) => name);

test("leaves of three relays apply every change once and in order, though two of them write at the same time", async () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  const { fleet, relays, leaves } = await scene(3, 6);
  const CHANGES = 30;
  try {
    for (let round = 0; round < CHANGES; round += 2) {
      const [one, other] = [random.pick(leaves), random.pick(leaves)];
      // The same leaf takes one after the other.
      await Promise.all([create(one, `s${round}`), create(other, `s${round + 1}`)]);
      if (random.chance(0.5)) await Promise.all(leaves.map((leaf) => leaf.changes.follow()));
    }
    for (const leaf of leaves) await leaf.changes.follow();
    expect(fleet.entries.map(({ position }) => position)).toEqual(
      Array.from({ length: CHANGES }, (_, index) => index + 1),
    );
    const [first] = leaves.map(namesOf);
    expect(first).toHaveLength(CHANGES);
    for (const leaf of leaves) {
      expect(namesOf(leaf)).toEqual(first!);
      expect(leaf.store.mark()).toEqual(leaves[0]!.store.mark());
      expect(leaf.served).toEqual([...new Set(leaf.served)].sort((one, two) => one - two));
    }
    // Each relay gets each entry once, however many leaves it has.
    expect(fleet.sent).toBe(CHANGES * relays.length);
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
});

test("a relay reports the position that all its leaves serve, and signs that", async () => {
  const { fleet, relays } = await scene(1, 0);
  const [relay] = relays as [Relay];
  for (const name of ["n1", "n2"]) await relay.beatOf(rowOf(name, 0));
  await relay.beat(rowOf("r0", 7));
  const reported = async () => {
    const [row] = await fleet.nodes();
    expect(isSigned(codec, row!)).toBe(true);
    return row!.served;
  };
  expect(await reported()).toBe(0);
  await relay.beatOf(rowOf("n1", 7));
  expect(await reported()).toBe(0);
  // Out of turn: the relay's own node has said nothing new.
  await relay.beatOf(rowOf("n2", 5));
  expect(await reported()).toBe(5);
  await relay.beatOf(rowOf("n2", 8));
  expect(await reported()).toBe(7);
});

test("a leaf goes on with another relay when its own one is silent, and lacks nothing", async () => {
  const { relays, sources, leaves } = await scene(2, 2);
  const [first, second] = leaves as [TestNode, TestNode];
  await create(first, "before");
  await second.changes.follow();
  relays[0]!.isEnded = true;
  await create(second, "while it is silent");
  expect(first.changes.follow()).rejects.toMatchObject({ status: 503 });
  await first.changes.follow().catch(() => undefined);
  sources[0]!.reconnect();
  await create(second, "after");
  await first.changes.follow();
  expect(namesOf(first)).toEqual(["before", "while it is silent", "after"]);
  await create(first, "by the other relay");
  await second.changes.follow();
  expect(namesOf(second)).toEqual(namesOf(first));
});

test("a leaf with an empty database joins through a relay, also after the first entries were removed", async () => {
  const { fleet, sources, leaves } = await scene(1, 2);
  const [first] = leaves as [TestNode];
  for (const name of ["a", "b"]) await create(first, name);
  fleet.newestWhole = first.whole();
  fleet.pruned = fleet.newestWhole.position;
  await create(first, "c");
  using directory = temporaryDirectory();
  const { store } = openStore(directory.path);
  store.commit(beginningOf(await oldestOf(sources[1]!), codec));
  store.close();
  const joined = new TestNode("n9", sources[1]!, 0, directory.path);
  nodes.push(joined);
  await joined.changes.follow();
  expect(namesOf(joined)).toEqual(["a", "b", "c"]);
  expect(joined.store.mark()).toEqual(first.store.mark());
});
