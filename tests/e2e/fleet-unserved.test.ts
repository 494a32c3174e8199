// A node whose workers do not serve a change that is in the log: it never says that nothing was changed, and names itself.
import { expect } from "bun:test";
import { Fleet } from "../../src/fleet/fleet.ts";
import { Follower } from "../../src/fleet/follower.ts";
import { FleetMeter } from "../../src/fleet/meter.ts";
import { defaultTimes } from "../../src/fleet/times.ts";
import { createLog } from "../../src/log.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { codec, TestNode } from "../unit/fleet/node.ts";
import { serviceOf } from "../unit/store/fixture.ts";
import { createSource } from "../support/fleet-source.ts";

const { afterEach, test } = needs("postgres");

const cleanups = cleanupsOf(afterEach);

/** A node with its heartbeats; its workers are those of the test. */
async function startNode() {
  const postgres = await Postgres.create();
  cleanups.push(() => postgres.stop());
  const source = createSource(postgres);
  await source.open();
  const node = new TestNode("n1", source, 0);
  cleanups.push(() => node.close());
  const log = createLog({ level: "error", format: "json", sink: () => {} });
  const times = { ...defaultTimes, beat: 20 };
  const isDrained = () => false;
  const lease = { begin() {}, end: () => Promise.resolve(), isOurs: false };
  const shared = { source, codec, id: "n1", name: "n1", clock: Date, times, isDrained, lease };
  const follower = new Follower({
    ...shared,
    mark: () => node.store.mark(),
    url: null,
    version: "0",
    log,
    contact: { get: () => null, set() {} },
    prune() {},
  });
  const fleet = new Fleet({
    ...shared,
    follower,
    meter: new FleetMeter(),
    tokenKey: () => "",
    absentMs: () => 0,
    keyPosition: () => Promise.resolve(0),
  });
  cleanups.push(() => follower.end({ isReplaced: false }));
  const { changes, fleetStore: store } = node;
  await follower.begin({ changes, store, rolloutStatus: () => node.rolloutStatus() });
  return { node, fleet };
}

test("a change that a worker does not activate is answered, counted as missing here, and served once the worker is replaced", async () => {
  const { node, fleet } = await startNode();
  const create = (name: string) =>
    node.change((draft) => {
      const now = draft.stamp();
      const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
      draft.put("services", { ...serviceOf(name), ...identity });
    });
  await create("served");
  expect(await fleet.reachStored()).toEqual({ live: 1, nodes: 1, missing: [] });
  node.isStuck = true;
  await create("not served");
  const { live, nodes, missing } = await fleet.reachStored(100);
  expect([live, nodes, missing[0]?.name, missing[0]?.state]).toEqual([0, 1, "n1", "lagging"]);
  // Facts that come later are no sign that the workers serve the change.
  await node.changes.record(() => ({
    value: null,
    facts: [{ kind: "admin_token", token: null }],
  }));
  expect((await fleet.reachStored(100)).live).toBe(0);
  node.isStuck = false;
  await eventually(async () => (await fleet.reachStored(100)).live === 1);
});
