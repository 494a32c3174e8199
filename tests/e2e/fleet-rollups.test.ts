// Statistics of nodes that are away or gone: the sum of the fleet has what they stored in the database, once, and nothing that is forged.
import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changingClock, fakeTime } from "../support/faketime.ts";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { startLastingOrigin } from "../support/lasting-clients.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, beforeAll, test } = needs(
  "executable",
  "postgres",
  "network namespaces",
  fakeTime,
);

const PORT = 8080;

let fleet: TestFleet;
let origin: ReturnType<typeof startLastingOrigin>;
const directory = mkdtempSync(join(tmpdir(), "sluice-rollups-"));
const clockFile = join(directory, "clock");

const nodes = () => fleet.nodes as [Gateway, Gateway, Gateway];
const read = (path: string, node = nodes()[0]) => node.ok("GET", `/api/v1/${path}`);
const setClock = (seconds: number) =>
  writeFileSync(clockFile, `${seconds < 0 ? "" : "+"}${seconds}s`);

beforeAll(async () => {
  setClock(-60);
  fleet = await TestFleet.start(3, {
    networks: true,
    node: (name) => (name === "n3" ? { env: changingClock(clockFile) } : {}),
  });
  origin = startLastingOrigin(fleet.hostname);
  const [first] = nodes();
  const targets = [{ host: fleet.hostname, port: origin.port }];
  await first.ok("POST", "/api/v1/services", { name: "site", targets });
  await first.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  await isComplete();
});
afterAll(async () => {
  await origin?.stop(true);
  await fleet?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Waits until each node reads all of them. */
async function isComplete(): Promise<void> {
  await eventually(async () => {
    const views = await Promise.all(nodes().map((node) => read("stats?node=all", node)));
    return views.every((view) => view.nodes.length === 3 && view.stored.length === 0);
  });
}

async function request(number: number, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent++)
    await (await fetch(`http://${fleet.addresses[number - 1]}:${PORT}/`)).text();
}

const totalOf = async (query: string) => (await read(`stats?${query}`)).history.total.requests;

/** Number of minutes in the database of a node. */
const minutesOf = async (id: string) => {
  const [row] = await fleet.query(
    async (sql) =>
      await sql`select count(*)::int as count from sluice.rollup where node = ${id} and kind = 'total' and span = 60`,
  );
  return row.count;
};

const idOf = async (name: string): Promise<string> => (await read(`nodes/${name}`)).id;

/** What the view of all nodes has: `2 of n1, n2; n3 stored`. */
async function viewOf(query = "node=all"): Promise<string> {
  const { nodes: each, stored, history } = await read(`stats?${query}`);
  const names = (all: readonly { readonly node: string }[]) =>
    all.map(({ node }) => node).join(" ");
  return `${history.total.requests} of ${names(each)}; stored: ${names(stored)}`;
}

test("a node that is killed stays in the sum with its past minutes, once; when it is back, its own figures count", async () => {
  await request(1, 2);
  await request(3, 5);
  await eventually(async () => (await totalOf("node=all")) === 7);
  const id = await idOf("n3");
  // Its minute ends.
  setClock(0);
  await eventually(async () => {
    await read("stats", nodes()[2]);
    return (await minutesOf(id)) > 0;
  });
  await isComplete();
  expect(await totalOf("node=all")).toBe(7);
  await nodes()[2].kill9();
  for (const range of ["1h", "24h", "30d"]) {
    const view = await read(`stats?node=all&range=${range}`);
    expect(view.history.total.requests).toBe(7);
    expect(view.history.by_route).toMatchObject([{ name: "site", requests: 7 }]);
    expect(view.history.by_target).toMatchObject([{ requests: 7 }]);
    expect(view.nodes.map(({ node }: { node: string }) => node)).toEqual(["n1", "n2"]);
    expect(view).toMatchObject({ partial: true, stored: [{ node: "n3" }] });
    const [{ until }] = view.stored;
    const minute = `${until.slice(0, 16).replace("T", " ")} UTC`;
    const why = `it refused the connection; the history has its statistics until ${minute}`;
    expect(view.missing).toEqual([{ name: "n3", why }]);
  }
  expect(await totalOf("node=n3")).toBe(5);
  expect(await totalOf("node=n3&route=site")).toBe(5);
  expect(await totalOf("node=n3&route=other")).toBe(0);
  expect(await totalOf("node=n2")).toBe(0);
  await nodes()[2].start();
  await isComplete();
  expect(await totalOf("node=all")).toBe(7);
});

test("rows that no node has signed so are left out", async () => {
  await nodes()[2].kill9();
  const id = await idOf("n3");
  expect(await viewOf()).toBe("7 of n1 n2; stored: n3");
  const copies = [
    [
      "of another node",
      (sql: Bun.SQL) => sql`select 'n4', span, at, kind, document, mac from saved`,
    ],
    [
      "of another minute",
      (sql: Bun.SQL) => sql`select node, span, at - 60, kind, document, mac from saved`,
    ],
    [
      "of another kind",
      (sql: Bun.SQL) =>
        sql`select node, span, at, 'total', document, mac from saved where kind = 'route'`,
    ],
    [
      "of another content",
      (sql: Bun.SQL) => sql`select node, span, at, kind, document || '\\x00', mac from saved`,
    ],
    [
      "without a signature",
      (sql: Bun.SQL) => sql`select node, span, at, kind, document, '\\x' from saved`,
    ],
  ] as const;
  await fleet.query((sql) => sql`create table saved as table sluice.rollup`);
  // On a busy machine several nodes have rows of one hour, which become one when they get one name.
  for (const [what, copy] of copies) {
    await fleet.query((sql) => sql`truncate sluice.rollup`);
    await fleet.query((sql) => sql`insert into sluice.rollup ${copy(sql)} on conflict do nothing`);
    expect([what, await viewOf()]).toEqual([what, "2 of n1 n2; stored: "]);
    expect([what, await viewOf(`node=${id}`)]).toEqual([what, "0 of ; stored: "]);
  }
  await fleet.query((sql) => sql`truncate sluice.rollup`);
  await fleet.query((sql) => sql`insert into sluice.rollup table saved`);
  expect(await viewOf()).toBe("7 of n1 n2; stored: n3");
  await nodes()[2].start();
  await isComplete();
});

test("a node that has left stays in the sum with all that it counted, also when another one has its name", async () => {
  const id = await idOf("n3");
  await request(3, 4);
  await eventually(async () => (await totalOf("node=n3")) === 9);
  // Its data directory is gone with it.
  await nodes()[2].stop();
  await eventually(async () => (await viewOf()) === "11 of n1 n2; stored: n3");
  // Nodes look for each other once a second.
  await eventually(async () => (await read("stats?node=all")).missing.length === 0);
  expect(await read("stats?node=all")).toMatchObject({ partial: false, stored: [{ node: "n3" }] });
  for (const key of [id, "n3"]) expect(await viewOf(`node=${key}`)).toBe("9 of ; stored: n3");
  expect((await nodes()[0].api("GET", "/api/v1/stats?node=n4")).status).toBe(404);
  mkdirSync(nodes()[2].dataDir);
  await nodes()[2].start();
  await eventually(async () => (await viewOf()) === "11 of n1 n2 n3; stored: n3");
  await request(3, 1);
  await eventually(async () => (await viewOf()) === "12 of n1 n2 n3; stored: n3");
  expect(await viewOf("node=n3")).toBe("1 of n3; stored: ");
  expect(await viewOf(`node=${id}`)).toBe("9 of ; stored: n3");
});

test("while the database is away, the view has the nodes that respond; what was not stored is stored later", async () => {
  const id = await idOf("n3");
  const before = await minutesOf(id);
  await fleet.postgres.kill();
  for (const node of nodes())
    await eventually(async () => (await read("admin/status", node)).fleet.state === "cut_off");
  await request(3, 1);
  await eventually(async () => (await viewOf()) === "4 of n1 n2 n3; stored: ");
  setClock(60);
  await read("stats", nodes()[2]);
  await fleet.postgres.start();
  await eventually(async () => (await viewOf()) === "13 of n1 n2 n3; stored: n3");
  await eventually(async () => {
    await read("stats", nodes()[2]);
    return (await minutesOf(id)) > before;
  });
  setClock(0);
});
