// Statistics of nodes that are away or gone: the sum of the fleet has what they stored in the database, once, and nothing that is forged.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changingClock } from "../support/faketime.ts";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { startLastingOrigin } from "../support/lasting-clients.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, beforeAll, test } = needs(
  "executable",
  "postgres",
  "network namespaces",
  "faketime",
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
}, 90_000);
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

/** Rows of totals in the database by the name of their node. */
const storedRows = async () =>
  await fleet.query(
    async (sql) => await sql`select node from sluice.rollup where kind = 'total' and span = 60`,
  );

test("a node that is killed stays in the sum with its past minutes, once; when it is back, its own figures count", async () => {
  await request(1, 2);
  await request(3, 5);
  await eventually(async () => (await totalOf("node=all")) === 7);
  // Its minute ends.
  setClock(0);
  await eventually(async () => {
    await read("stats", nodes()[2]);
    return (await storedRows()).length > 0;
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
    const why = `it refused the connection; the history has its statistics until ${until}`;
    expect(view.missing).toEqual([{ name: "n3", why }]);
  }
  expect(await totalOf("node=n3")).toBe(5);
  expect(await totalOf("node=n3&route=site")).toBe(5);
  expect(await totalOf("node=n3&route=other")).toBe(0);
  expect(await totalOf("node=n2")).toBe(0);
  await nodes()[2].start();
  await isComplete();
  expect(await totalOf("node=all")).toBe(7);
}, 90_000);
