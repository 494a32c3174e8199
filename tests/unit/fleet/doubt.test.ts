// An append whose response was lost, in a fleet where no other node writes: the node itself finds out what became of it.
import { afterEach, expect, test } from "bun:test";
import { Follower } from "../../../src/fleet/follower.ts";
import type { FleetSource } from "../../../src/fleet/source.ts";
import { defaultTimes } from "../../../src/fleet/times.ts";
import { createLog } from "../../../src/log.ts";
import { eventually } from "../../support/poll.ts";
import { serviceOf } from "../store/fixture.ts";
import { MemorySource } from "./memory-source.ts";
import { codec, TestNode } from "./node.ts";

/** Its heartbeats say where the log ends. */
class BeatingSource extends MemorySource implements FleetSource {
  async beat() {
    const last = this.entries.at(-1);
    return { position: last?.position ?? 0, id: last?.id ?? null, at: Date.now() };
  }
  nodes = () => Promise.resolve([]);
  forget = () => Promise.resolve();
  forgetAway = () => Promise.resolve(false);
  listen = () => Promise.resolve(false);
  open = () => Promise.resolve();
  reconnect() {}
  close = () => Promise.resolve();
}

let follower: Follower | null = null;
let node: TestNode | null = null;
afterEach(async () => {
  await follower?.end({ isReplaced: true });
  node?.close();
});

const create = (name: string) =>
  node?.change((draft) => {
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf(name), ...identity });
  });

test("a change in doubt blocks no later one, though the log has not moved", async () => {
  const source = new BeatingSource();
  node = new TestNode("n1", source, 0);
  const { store, changes, fleetStore } = node;
  const lease = { begin() {}, end: () => Promise.resolve() };
  const log = createLog({ level: "error", format: "json", sink: () => {} });
  follower = new Follower({
    ...{ source, codec, id: "n1", name: "n1", url: null, version: "0", log, clock: Date, lease },
    times: { ...defaultTimes, beat: 1, poll: 1 },
    mark: () => store.mark(),
    contact: { get: () => null, set() {} },
    prune() {},
    isDrained: () => false,
  });
  await create("first");
  await follower.begin({ changes, store: fleetStore, rolloutStatus: () => node!.rolloutStatus() });
  const { idAt } = source;
  source.idAt = async () => {
    throw new Error("the database is away");
  };
  source.fault = "request";
  expect(await create("in doubt")?.catch(({ status }) => status)).toBe(504);
  source.idAt = idAt;
  await eventually(async () => {
    await create("second");
    return true;
  });
  expect([...node.config.services.values()].map(({ name }) => name)).toEqual(["first", "second"]);
});
