// The statistics of nodes in a real PostgreSQL: who reads which rows, what is removed, and what a view may cost.
import { expect } from "bun:test";
import { type RollupRow, statKinds } from "../../src/model/rollup.ts";
import { RETENTION } from "../../src/observe/stats/rollups.ts";
import { TallySum, toDocument } from "../../src/observe/stats/tally.ts";
import { EntryCodec } from "../../src/fleet/entry.ts";
import { FleetRollups } from "../../src/fleet/rollups.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { needs } from "../support/needs.ts";
import { openSource } from "../support/fleet-source.ts";

const { afterEach, test } = needs("postgres");

const cleanups = cleanupsOf(afterEach);

const rowOf = (at: number, requests: number, object_id = ""): RollupRow => ({
  ...{ span: 60, at, kind: "total", object_id },
  document: { name: "", ...toDocument(new TallySum()), requests },
});

async function scene() {
  const { postgres, source } = await openSource(cleanups);
  const sql = postgres.connect();
  cleanups.push(() => sql.close({ timeout: 0 }));
  let isCutOff = false;
  const node = (id: string, codec: EntryCodec) => {
    const clock = { at: 1000, now: () => clock.at };
    const requireConnected = () => {
      if (isCutOff) throw new Error("cut off");
    };
    const rollups = new FleetRollups({
      ...{ source, codec, id, name: `name of ${id}`, clock, requireConnected },
    });
    const read = async (without: readonly string[] = []) =>
      await rollups.read({ span: 60, kinds: ["total"], from: 0, to: 600, without });
    return { clock, read, write: (...rows: RollupRow[]) => rollups.write(rows) };
  };
  const cutOff = () => {
    isCutOff = true;
  };
  return { source, sql, node, cutOff };
}

const requestsOf = (rows: readonly RollupRow[]) =>
  rows.map(({ at, document }) => `${at}: ${document.requests}`);

test("rows are replaced by later ones of their time, and read by node", async () => {
  const { node, cutOff } = await scene();
  const [one, other] = ["n1", "n2"].map((id) => node(id, new EntryCodec("fleet", "key")));
  await one!.write(rowOf(60, 1), rowOf(120, 2));
  one!.clock.at = 5000;
  await one!.write(rowOf(120, 3));
  await other!.write(rowOf(120, 7), rowOf(660, 8));
  const found = await other!.read();
  const [first, second] = found.toSorted(({ id }, { id: next }) => (id < next ? -1 : 1));
  expect(first).toMatchObject({ id: "n1", name: "name of n1", until: 5000 });
  expect(requestsOf(first!.rows)).toEqual(["60: 1", "120: 3"]);
  expect(second).toMatchObject({ id: "n2", until: 1000 });
  expect(requestsOf(second!.rows)).toEqual(["120: 7"]);
  expect((await other!.read(["n2"])).map(({ id }) => id)).toEqual(["n1"]);
  expect(await other!.read(["n1", "n2"])).toEqual([]);
  cutOff();
  await expect(other!.read()).rejects.toThrow("cut off");
  await expect(other!.write(rowOf(60, 1))).rejects.toThrow("cut off");
});

test("rows that are signed with a former key, or for another fleet, are left out", async () => {
  const { node } = await scene();
  const codec = new EntryCodec("fleet", "former");
  const [reader, former] = [node("n1", codec), node("n2", new EntryCodec("fleet", "former"))];
  await former.write(rowOf(60, 1));
  expect(await reader.read()).toHaveLength(1);
  await node("n3", new EntryCodec("another", "former")).write(rowOf(60, 1));
  expect(await reader.read()).toHaveLength(1);
  codec.rotate(5, "new");
  expect(await reader.read()).toEqual([]);
  await node("n4", new EntryCodec("fleet", "new")).write(rowOf(60, 1));
  expect((await reader.read()).map(({ id }) => id)).toEqual(["n4"]);
});

test("rows are removed after the retention of their span, also those from a clock that was ahead", async () => {
  const { source, sql } = await scene();
  const names: string[] = [];
  for (const [span, seconds] of Object.entries(RETENTION))
    for (const [age, name] of [
      [60 - seconds, "young"],
      [-60 - seconds, "old"],
      [seconds - 60, "ahead"],
      [seconds + 60, "far ahead"],
    ] as const) {
      if (age > -seconds && age < seconds) names.push(`${span} ${name}`);
      await sql`
        insert into sluice.rollup (node, span, at, kind, document, mac)
        values (${name}, ${Number(span)}, extract(epoch from now())::bigint + ${age}::bigint, 'route', '\\x', '\\x')`;
    }
  await source.pruneRollups(RETENTION, statKinds);
  const rows = await sql`select span, node from sluice.rollup`;
  const left = rows.map(({ span, node }: { span: number; node: string }) => `${span} ${node}`);
  expect(left.toSorted()).toEqual(names.toSorted());
});

test("a view reads at most 32 MiB, the newest", async () => {
  const { source, sql } = await scene();
  const write = async (at: number, bytes: number) =>
    await sql`
      insert into sluice.rollup (node, span, at, kind, document, mac)
      values ('n1', 60, ${at}, 'total', decode(repeat('00', ${bytes}::int), 'hex'), '\\x')`;
  const timesRead = async () => {
    const query = { span: 60, kinds: ["total"], from: 0, to: 600, without: [] } as const;
    return (await source.rollups(query)).map(({ at }) => at);
  };
  for (const at of [120, 180, 240, 300]) await write(at, 8 * 1_048_576);
  expect(await timesRead()).toEqual([120, 180, 240, 300]);
  await write(60, 1);
  expect(await timesRead()).toEqual([120, 180, 240, 300]);
  await write(360, 1);
  expect(await timesRead()).toEqual([180, 240, 300, 360]);
});
