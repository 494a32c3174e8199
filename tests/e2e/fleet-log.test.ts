// The log of a fleet in a real PostgreSQL: large entries, pruning, nodes that join or were away, too many nodes.
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { EntryCodec } from "../../src/fleet/entry.ts";
import { beginningOf, oldestOf } from "../../src/fleet/join.ts";
import type { FleetError } from "../../src/fleet/postgres-connection.ts";
import type { PostgresSource } from "../../src/fleet/postgres-source.ts";
import { prune } from "../../src/fleet/whole.ts";
import { createLog } from "../../src/log.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { createSource, openSource } from "../support/fleet-source.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import type { Postgres } from "../support/postgres.ts";
import { codec, TestNode } from "../unit/fleet/node.ts";
import { serviceOf } from "../unit/store/fixture.ts";

const { afterEach, test } = needs("postgres");

const log = createLog({ level: "error", format: "json", sink: () => {} });
const cleanups = cleanupsOf(afterEach);

function sourceOf(postgres: Postgres): PostgresSource {
  const source = createSource(postgres);
  cleanups.push(() => source.close());
  return source;
}

function nodeOf(name: string, source: PostgresSource): TestNode {
  const node = new TestNode(name, source, 0);
  cleanups.push(() => node.close());
  return node;
}

const add = (node: TestNode, name: string, description = "") =>
  node.change((draft) => {
    const now = draft.stamp();
    const id = Bun.randomUUIDv7();
    const identity = { id, created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf(name), tags: [description], ...identity });
  });

const namesOf = ({ config }: TestNode) => [...config.services.values()].map(({ name }) => name);

const row = (node: TestNode, name: string) => {
  const position = node.store.mark()?.position ?? 0;
  const state = {
    url: "",
    version: "0",
    formatMax: 1,
    state: "serving",
    error: "",
    draining: false,
    clockOffsetMs: 0,
  };
  return { id: name, name, ...state, stored: position, served: position, mac: new Uint8Array() };
};

test("an entry of several megabytes lies in pieces, and one whose pieces are lost is not half applied", async () => {
  const { postgres, source } = await openSource(cleanups);
  const [first, second, third] = ["a", "b", "c"].map((name) => nodeOf(name, source));
  // Random, so that it stays large when it is compressed.
  const large = randomBytes(3_000_000).toString("base64");
  await add(first!, "large", large);
  await add(first!, "after");
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  const [{ parts }] = await sql`select count(*)::int as parts from sluice.chunk`;
  expect(parts).toBeGreaterThanOrEqual(3);
  await second!.changes.follow();
  expect(namesOf(second!)).toEqual(["large", "after"]);
  expect(second!.store.load().config.services.values().next().value?.tags).toEqual([large]);
  await sql`delete from sluice.chunk where part = 1`;
  const lost = await third!.changes.follow().catch((error: Error) => error.message);
  expect(lost).toContain("not signed");
  expect(namesOf(third!)).toEqual([]);
  await sql`delete from sluice.chunk`;
  const gone = await third!.changes.follow().catch((error: Error) => error.message);
  expect(gone).toContain("lacks entry");
  // With what the others have, it joins whole.
  const mark = first!.store.mark()!;
  await source.writeWhole(first!.whole());
  await third!.changes.follow();
  expect(namesOf(third!)).toEqual(["large", "after"]);
  expect(third!.store.mark()).toEqual(mark);
  await sql.close();
});

test("the log is pruned below what every node has, never its last entries, and a node that was away joins whole", async () => {
  const { postgres, source } = await openSource(cleanups);
  const [first, second, away] = ["a", "b", "c"].map((name) => nodeOf(name, source));
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  const positions = async () =>
    (await sql`select position::int from sluice.entry order by position`).map(
      ({ position }: { position: number }) => position,
    );
  const limits = { keep: 5, absentMs: () => 60_000 };
  const pruneBy = (node: TestNode) =>
    prune({ source, codec, store: node.store, node: "a", ...limits, log });
  for (let index = 0; index < 12; index++) await add(first!, `s${index}`);
  // The second node has eight entries, and was seen.
  await second!.changes.follow();
  await source.beat({ ...row(first!, "a") });
  await source.beat({ ...row(second!, "b"), stored: 8, served: 8 });
  await pruneBy(first!);
  // Entry 8 stays: the second node finds by it that it has the same history.
  expect(await positions()).toEqual([8, 9, 10, 11, 12]);
  await source.beat(row(second!, "b"));
  await pruneBy(first!);
  expect(await positions()).toEqual([8, 9, 10, 11, 12]);
  for (let index = 12; index < 17; index++) await add(first!, `s${index}`);
  await second!.changes.follow();
  await source.beat(row(first!, "a"));
  await source.beat(row(second!, "b"));
  await pruneBy(first!);
  expect(await positions()).toEqual([13, 14, 15, 16, 17]);
  // A node that was never seen, or not for a day, has none of them.
  await away!.changes.follow();
  expect(namesOf(away!)).toEqual(namesOf(first!));
  expect(away!.changes.revision).toBe(first!.changes.revision);
  const written = beginningOf(await oldestOf(source), codec);
  expect(written.change.services.upserts.length).toBe(17);
  await add(away!, "last");
  await first!.changes.follow();
  expect(namesOf(first!)).toEqual(namesOf(away!));
  await sql.close();
});

test("a slow change is not starved by a node that is always faster", async () => {
  const { postgres, source } = await openSource(cleanups);
  const [slow, fast] = [nodeOf("slow", source), nodeOf("fast", sourceOf(postgres))];
  let isOver = false;
  let made = 0;
  const writer = (async () => {
    while (!isOver) {
      await add(fast, `fast ${made}`);
      made++;
    }
  })();
  let tries = 0;
  await slow.change(async (draft) => {
    tries++;
    const before = made;
    // Until it is too late, or the other one has to wait.
    const end = performance.now() + 300;
    while (made < before + 2 && performance.now() < end) await Bun.sleep(5);
    const now = draft.stamp();
    const identity = { id: Bun.randomUUIDv7(), created_at: now, updated_at: now };
    draft.put("services", { ...serviceOf("slow"), ...identity });
  });
  const meanwhile = made;
  await eventually(() => made > meanwhile + 3);
  isOver = true;
  await writer;
  expect(tries).toBe(4);
  await slow.changes.follow();
  expect(namesOf(slow)).toEqual(namesOf(fast));
  expect(namesOf(slow)).toContain("slow");
});

test("pieces of entries that never came are removed after an hour", async () => {
  const { postgres, source } = await openSource(cleanups);
  const node = nodeOf("a", source);
  await add(node, "kept", randomBytes(2_000_000).toString("base64"));
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  await sql`insert into sluice.chunk (body_id, part, bytes, at) values
    (${Bun.randomUUIDv7()}, 0, ${Buffer.from("old")}, now() - interval '61 minutes'),
    (${Bun.randomUUIDv7()}, 0, ${Buffer.from("new")}, now() - interval '59 minutes')`;
  await sql`update sluice.chunk set at = now() - interval '2 hours' where body_id in (select entry_id from sluice.entry)`;
  await source.prune({ keep: 5, absentMs: 1000 });
  const left = await sql`select octet_length(bytes) as bytes from sluice.chunk order by bytes`;
  expect(left.some(({ bytes }: { bytes: number }) => bytes === 3)).toBe(true);
  expect(left.filter(({ bytes }: { bytes: number }) => bytes === 3)).toHaveLength(1);
  expect(left.length).toBeGreaterThan(1);
  await sql.close();
});

test("50 nodes are the most, and a name belongs to one node", async () => {
  const { source } = await openSource(cleanups);
  const node = nodeOf("n", source);
  const admit = (id: string, name: string) =>
    source.admit({ id, name, presentMs: 5000, log }).then(
      () => "admitted",
      (error: FleetError) => error.message,
    );
  for (let index = 1; index <= 49; index++) await source.beat({ ...row(node, `n${index}`) });
  expect(await admit("new", "n50")).toBe("admitted");
  await source.beat({ ...row(node, "n50") });
  expect(await admit("new", "n51")).toContain("the fleet has 50 nodes");
  expect(await admit("n7", "n7")).toBe("admitted");
  expect(await admit("new", "n7")).toContain("choose a name of its own");
});

test("an entry is added only after the one that its node has last, as after a failover that lost changes", async () => {
  const { source } = await openSource(cleanups);
  const node = nodeOf("a", source);
  await add(node, "one");
  const { id } = node.store.mark()!;
  const next = () =>
    codec.encode({ position: 2, id: Bun.randomUUIDv7() }, "a", {
      changed: null,
      facts: [],
      previous: id,
    });
  expect(await source.append(next(), null, Bun.randomUUIDv7())).toBe(false);
  expect(await source.append(next(), null, id)).toBe(true);
});

test("a codec of another fleet or key reads nothing", async () => {
  const { source } = await openSource(cleanups);
  await add(nodeOf("a", source), "one");
  const [entry] = (await source.after(0)).entries;
  for (const other of [new EntryCodec("fleet", "other key"), new EntryCodec("other", "key")])
    expect(() => other.decode(entry!)).toThrow("not signed with the secret key");
  // A change is not taken for the whole, which is signed as such.
  expect(() => codec.decode({ ...entry!, kind: "whole" })).toThrow("not signed");
});
