// What nodes report of their plugins in a real PostgreSQL: only rows that the node has signed count, and rows that are lost come back.
import { expect } from "bun:test";
import type { NodePlugin } from "../../src/control/node-plugins.ts";
import { EntryCodec } from "../../src/fleet/entry.ts";
import { FleetPlugins, MAX_REPORTED } from "../../src/fleet/node-plugins.ts";
import { createLog } from "../../src/log.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { openSource } from "../support/fleet-source.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterEach, test } = needs("postgres");

const cleanups = cleanupsOf(afterEach);

const plugin = (name: string): NodePlugin => ({ name, hash: name.padEnd(64, "0") });

async function scene() {
  const { postgres, source } = await openSource(cleanups);
  const sql = postgres.connect();
  cleanups.push(() => sql.close({ timeout: 0 }));
  const lines: string[] = [];
  const log = createLog({ level: "info", format: "json", sink: (line) => void lines.push(line) });
  const node = (id: string, { key = "key", version = "1.0.0" } = {}) => {
    const beats: (() => void)[] = [];
    const follower = {
      isConnected: true,
      onBeat: (listener: () => void) => void beats.push(listener),
    };
    const directory = {
      plugins: [plugin("own")],
      view: () => ({ plugins: [...directory.plugins, { name: "refused", hash: null }] }),
    };
    const codec = new EntryCodec("fleet", key);
    const plugins = new FleetPlugins({ source, codec, id, version, log, follower, directory });
    const read = async (other: string, as = "1.0.0") =>
      (await plugins.read([{ id: other, version: as }])).get(other) ?? null;
    const beat = () => {
      for (const listener of beats) listener();
    };
    return { directory, follower, read, beat };
  };
  const rows = async (): Promise<string[]> =>
    (await sql`select node from sluice.node_plugins order by node`).map(
      (row: { node: string }) => row.node,
    );
  /** After a heartbeat the row is written in the background. */
  const beaten = async (given: ReturnType<typeof node>, isThere: () => Promise<boolean>) =>
    await eventually(async () => {
      given.beat();
      return await isThere();
    });
  const enter = (id: string) => sql`
    insert into sluice.node (id, name, url, version, format_max, stored, served, state, mac)
    values (${id}, ${id}, '', '1.0.0', 1, 0, 0, 'serving', '')`;
  return { sql, node, rows, beaten, enter, lines };
}

test("a node reports with its heartbeat what it serves, and what has changed", async () => {
  const { node, rows, beaten } = await scene();
  const [one, two] = [node("n1"), node("n2")];
  one.follower.isConnected = false;
  one.beat();
  one.follower.isConnected = true;
  expect(await two.read("n1")).toBeNull();
  await beaten(one, async () => (await two.read("n1")) !== null);
  expect(await two.read("n1")).toEqual([plugin("own")]);
  one.directory.plugins = [];
  await beaten(one, async () => (await two.read("n1"))?.length === 0);
  expect(await rows()).toEqual(["n1"]);
  // Of itself a node knows without the database.
  expect(await two.read("n2")).toEqual([plugin("own")]);
});

test("rows that another key has signed, that were copied from another node, or that an older version left do not count", async () => {
  const { sql, node, rows, beaten, enter } = await scene();
  await enter("n2");
  await enter("n3");
  const [reader, forger] = [node("n1"), node("n2", { key: "another" })];
  await beaten(forger, async () => (await rows()).length === 1);
  expect(await reader.read("n2")).toBeNull();
  const honest = node("n3");
  await beaten(honest, async () => (await reader.read("n3")) !== null);
  expect(await rows()).toEqual(["n2", "n3"]);
  await sql`update sluice.node_plugins set (document, mac) = (
    select document, mac from sluice.node_plugins where node = 'n3') where node = 'n2'`;
  expect(await reader.read("n2")).toBeNull();
  expect(await reader.read("n3", "0.9.0")).toBeNull();
  await sql`update sluice.node_plugins set document = '{"plugins":[]}' where node = 'n3'`;
  expect(await reader.read("n3")).toBeNull();
});

test("100 plugins are reported, more are not", async () => {
  const { node, beaten } = await scene();
  const [one, two] = [node("n1"), node("n2")];
  const longest = (index: number) => plugin(`${index}`.padStart(64, "x"));
  one.directory.plugins = Array.from({ length: MAX_REPORTED }, (_, index) => longest(index));
  await beaten(one, async () => (await two.read("n1"))?.length === MAX_REPORTED);
  one.directory.plugins = [...one.directory.plugins, plugin("one-more")];
  await beaten(one, async () => (await two.read("n1")) === null);
});

test("without the table the nodes are listed all the same, and one line says that nothing is reported", async () => {
  const { sql, node, beaten, lines } = await scene();
  const one = node("n1");
  await sql`alter table sluice.node_plugins rename to moved`;
  await beaten(one, async () => lines.length > 0);
  one.beat();
  expect(await one.read("n2")).toBeNull();
  await sql`alter table sluice.moved rename to node_plugins`;
  await beaten(one, async () => (await node("n2").read("n1")) !== null);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("could not be reported to the fleet");
});

test("rows of nodes that are gone are removed", async () => {
  const { sql, node, rows, beaten, enter } = await scene();
  for (const id of ["n1", "n2"]) {
    await enter(id);
    await beaten(node(id), async () => (await rows()).includes(id));
  }
  await sql`delete from sluice.node where id = 'n1'`;
  expect(await rows()).toEqual(["n1", "n2"]);
  await beaten(node("n2"), async () => (await rows()).join() === "n2");
});
