// Which node has the work of the fleet, and when a node without the database has lost it.
import { expect, test } from "bun:test";
import { Contact } from "../../../src/fleet/contact.ts";
import { Duty } from "../../../src/fleet/duty.ts";
import type { NodeView } from "../../../src/control/fleet-view.ts";

const AWAY_MS = 5000;

function scene() {
  const state = { nodes: [] as Partial<NodeView>[], isAway: false, now: 0 };
  const nodes = async () => {
    if (state.isAway) throw new Error("away");
    return state.nodes.map((node) => ({ state: "serving", seen_ms_ago: 100, ...node }) as NodeView);
  };
  const dutyOf = (id: string) => new Duty({ nodes, id, awayMs: AWAY_MS, now: () => state.now });
  return { state, dutyOf };
}

test("the present node with the lowest id has the work, no other one", async () => {
  const { state, dutyOf } = scene();
  const duties = ["a", "b", "c"].map(dutyOf);
  const owners = async () => {
    await Promise.all(duties.map((duty) => duty.look()));
    return duties.map(({ isOurs }) => isOurs);
  };
  state.nodes = [{ id: "c" }, { id: "a" }, { id: "b" }];
  expect(await owners()).toEqual([true, false, false]);
  state.nodes = [{ id: "c" }, { id: "a", state: "away" }, { id: "b" }];
  expect(await owners()).toEqual([false, true, false]);
  state.nodes = [{ id: "c" }, { id: "a" }, { id: "b" }];
  expect(await owners()).toEqual([true, false, false]);
  state.nodes = [{ id: "c" }, { id: "a", state: "refused" }];
  expect(await owners()).toEqual([false, false, true]);
  state.nodes = [];
  state.now += AWAY_MS;
  expect(await owners()).toEqual([false, false, false]);
});

test("a node that is cut off loses the work before another one takes it", async () => {
  const { state, dutyOf } = scene();
  const duty = dutyOf("a");
  const turns: boolean[] = [];
  duty.onChange(() => turns.push(duty.isOurs));
  state.nodes = [{ id: "a", seen_ms_ago: 1000 }, { id: "b" }];
  await duty.look();
  state.isAway = true;
  state.now = AWAY_MS / 2 - 1001;
  await duty.look();
  expect(duty.isOurs).toBe(true);
  state.now = AWAY_MS / 2 - 1000;
  expect(duty.isOurs).toBe(false);
  await duty.look();
  // Its last heartbeat is 3.5 s old now, and the other one waits until it is 5 s old.
  state.isAway = false;
  await duty.look();
  expect(turns).toEqual([true, false, true]);
});

test("the time of the last contact outlives a restart", () => {
  const rows = new Map<string, string>();
  const store = { get: (key: string) => rows.get(key) ?? null, set: rows.set.bind(rows) };
  const agoMs = (contact: Contact) => performance.now() - contact.answeredAt;
  expect(agoMs(new Contact(store))).toBeLessThan(1000);
  new Contact(store).answered();
  rows.set("fleet_contact", String(Date.now() - 3_600_000));
  const contact = new Contact(store);
  expect(agoMs(contact)).toBeGreaterThan(3_599_000);
  contact.answered();
  expect(agoMs(contact)).toBeLessThan(1000);
  // A clock that was set back.
  rows.set("fleet_contact", String(Date.now() + 3_600_000));
  expect(agoMs(new Contact(store))).toBeLessThan(1000);
});
