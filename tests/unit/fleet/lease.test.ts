// Which node has the lease of the work, when a node without the database has lost it, and what that refuses.
import { expect, test } from "bun:test";
import type { NodeState } from "../../../src/control/fleet-view.ts";
import { Contact } from "../../../src/fleet/contact.ts";
import { Lease, leaseTimes } from "../../../src/fleet/lease.ts";
import type { LeaseSource, Term } from "../../../src/fleet/source.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

const { ttl, held, renew } = leaseTimes;

/** Leases by a clock of the test, as the database gives them. */
class LeaseTable implements LeaseSource {
  now = 0;
  isAway = false;
  #row: (Term & { expires: number }) | null = null;

  async lease({ holder, ms }: Parameters<LeaseSource["lease"]>[0]) {
    await Promise.resolve();
    if (this.isAway) throw new Error("away");
    const row = this.#row;
    if (row === null || row.holder === holder || row.expires <= this.now) {
      const epoch = (row?.epoch ?? 0) + (row?.holder === holder ? 0 : 1);
      this.#row = { holder, epoch, expires: this.now + ms };
    }
    const { expires, ...term } = this.#row ?? { holder: "", epoch: 0, expires: 0 };
    return { ...term, leftMs: Math.max(0, expires - this.now) };
  }

  release(holder: string) {
    if (this.#row?.holder === holder) this.#row.expires = this.now;
    return Promise.resolve();
  }
}

function scene() {
  const table = new LeaseTable();
  const nodeOf = (id: string) => {
    const turns: boolean[] = [];
    const node = { state: "serving" as NodeState, turns };
    const lease = new Lease({
      source: table,
      id,
      state: () => node.state,
      now: () => table.now,
    });
    lease.onChange(() => turns.push(lease.isOurs));
    return Object.assign(node, { lease });
  };
  return { table, nodes: [nodeOf("a"), nodeOf("b")] as const };
}

test("one node has the work, and keeps it while it renews the lease", async () => {
  const { table, nodes } = scene();
  const [a, b] = nodes;
  for (; table.now < 20 * ttl; table.now += renew) {
    expect(await a.lease.look()).toBe(renew);
    await b.lease.look();
    expect([a.lease.isOurs, b.lease.isOurs]).toEqual([true, false]);
  }
  expect(a.lease.term?.epoch).toBe(1);
  expect([a.turns, b.turns]).toEqual([[true], []]);
});

test("a holder without renewal has lost the work by its own clock before another one takes it", async () => {
  const { table, nodes } = scene();
  const [a, b] = nodes;
  await a.lease.look();
  table.now = held - 1;
  expect(a.lease.isOurs).toBe(true);
  table.now = held;
  expect([a.lease.isOurs, a.lease.term]).toEqual([false, null]);
  table.now = ttl - 1;
  const wait = await b.lease.look();
  expect(b.lease.isOurs).toBe(false);
  // The next look comes right after the end, not a whole interval later.
  expect(wait).toBeLessThan(100);
  table.now += wait;
  await b.lease.look();
  expect(b.lease.term?.epoch).toBe(2);
  await a.lease.look();
  expect([a.lease.isOurs, b.lease.isOurs]).toEqual([false, true]);
  expect([a.turns, b.turns]).toEqual([[true, false], [true]]);
});

test("without the database the work ends in time, and goes on when it answers", async () => {
  const { table, nodes } = scene();
  const [{ lease, turns }] = nodes;
  await lease.look();
  table.isAway = true;
  table.now = held - 1;
  await lease.look();
  expect(lease.isOurs).toBe(true);
  table.now = held;
  await lease.look();
  table.isAway = false;
  await lease.look();
  expect(turns).toEqual([true, false, true]);
});

test.each(["refused", "outdated", "diverged", "joining", "cut_off", "leaving"] as const)(
  "a node that is %s gives the work to another one at once",
  async (state) => {
    const { nodes } = scene();
    const [a, b] = nodes;
    await a.lease.look();
    a.state = state;
    await a.lease.look();
    await b.lease.look();
    expect([a.lease.isOurs, b.lease.isOurs]).toEqual([false, true]);
  },
);

test("a node that ends gives the work to another one at once, and its next process gets another epoch", async () => {
  const { table, nodes } = scene();
  const [a, b] = nodes;
  await a.lease.look();
  await a.lease.end();
  await b.lease.look();
  expect(b.lease.term?.epoch).toBe(2);
  await b.lease.end();
  const next = new Lease({ source: table, id: "b", state: () => "serving", now: () => table.now });
  await next.look();
  expect(next.term?.epoch).toBe(3);
});

test("what a node writes as the leader is refused when another one leads, and nothing is stored", async () => {
  const source = new MemorySource();
  const node = new TestNode("n1", source, 0);
  const fact = { kind: "sessions_ended", ids: [] } as const;
  const write = () => node.changes.record(() => ({ value: 0, facts: [fact], asLeader: true }));
  const refusal = /another node of the fleet does this work now; nothing was changed/;
  await expect(write()).rejects.toThrow(refusal);
  node.term = { holder: "a", epoch: 1 };
  source.term = { holder: "b", epoch: 2 };
  // It was stopped in the middle, and finds out with its next look.
  setTimeout(() => {
    node.term = null;
  }, 50);
  await expect(write()).rejects.toThrow(refusal);
  expect(source.entries).toHaveLength(0);
  // A turn would hold up the other nodes.
  expect(source.turns).toEqual([]);
  node.term = source.term;
  await write();
  expect(source.entries).toHaveLength(1);
  node.close();
});

test("the time of the last contact outlives a restart", () => {
  const rows = new Map<string, string>();
  const store = { get: (key: string) => rows.get(key) ?? null, set: rows.set.bind(rows) };
  const agoMs = (contact: Contact) => performance.now() - contact.answeredAt;
  expect(agoMs(new Contact(store))).toBeLessThan(600_000);
  new Contact(store).answered();
  rows.set("fleet_contact", String(Date.now() - 3_600_000));
  const contact = new Contact(store);
  expect(agoMs(contact)).toBeGreaterThan(3_599_000);
  contact.answered();
  expect(agoMs(contact)).toBeLessThan(600_000);
  // A clock that was set back.
  rows.set("fleet_contact", String(Date.now() + 3_600_000));
  expect(agoMs(new Contact(store))).toBeLessThan(600_000);
});
