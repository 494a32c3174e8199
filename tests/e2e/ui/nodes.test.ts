// The nodes of a fleet in the browser: their states, draining, forgetting, where a change is live, and the notices.
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";
import { Postgres } from "../../support/postgres.ts";
import { quietPort } from "../../support/quiet-port.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  startUi,
  type UiScene,
} from "../../support/ui-scene.ts";
import { executable } from "../../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium", "postgres");

let postgres: Postgres;
let scene: UiScene;
let second: Gateway;
const plugins = new PluginFiles();

beforeAll(async () => {
  postgres = await Postgres.create();
  const env = { SLUICE_SECRET_KEY: randomBytes(32).toString("base64") };
  plugins.write("n1/own.ts", pluginSource("own"));
  plugins.write("n1/lacking.ts", pluginSource("lacking"));
  plugins.write("n2/own.ts", pluginSource("own", { word: "two" }));
  const args = (name: string) => {
    const directory = ["--plugins-dir", join(plugins.path, name)];
    return ["--store", postgres.url, "--node-name", name, ...directory];
  };
  scene = await startUi({ env, args: args("n1"), workers: 1 });
  // Both nodes are on one machine, and could not share ports.
  for (const name of ["http", "https"])
    await scene.gateway.ok("DELETE", `/api/v1/listeners/${name}`);
  second = await startGateway({ binary: executable, env, args: args("n2"), workers: 1 });
  await scene.createPeople();
});
afterAll(async () => {
  second?.signal("SIGCONT");
  await second?.stop();
  await scene?.stop();
  await postgres?.stop();
  plugins[Symbol.dispose]();
});

const rowOf = (page: Page, name: string) =>
  page.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });

test("nodes show their states; an admin drains one and ends it", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/fleet" });
  const row = (name: string) => rowOf(page, name);
  await row("n1").getByText("this node").waitFor();
  await row("n2").getByText("up to date").waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByText("Fleet").waitFor();
  await page.getByRole("button", { name: "Actions of n2" }).click();
  await page.getByRole("menuitem", { name: "Drain" }).click();
  await page.getByText("Node n2 is draining").waitFor();
  await row("n2").getByText("draining", { exact: true }).waitFor();
  expect((await second.api("GET", "/readyz")).status).toBe(503);
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Actions of n2" }).click();
  await page.getByRole("menuitem", { name: "End draining" }).click();
  await row("n2").getByText("serving", { exact: true }).waitFor();
  expect((await second.api("GET", "/readyz")).status).toBe(200);
  expect(complaints).toEqual([]);
  await close();
});

test("the page shows how far each node is and which one leads, and its former address leads to it", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/nodes" });
  await page.waitForURL(/\/ui\/fleet$/);
  const response = await page.request.get(`${scene.gateway.admin}/api/v1/nodes/n2`);
  const { served, version } = await response.json();
  await rowOf(page, "n2").getByText(`entry ${served}`).waitFor();
  await rowOf(page, "n2").getByText(version, { exact: true }).waitFor();
  await rowOf(page, "n2").getByText("in sync").waitFor();
  await page
    .getByText(/2 of 2 nodes serve the last change, entry \d+. n[12] leads: it requests/)
    .waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("viewers see the nodes with their plugins and where these differ, and no actions", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/fleet" });
  const response = await page.request.get(`${scene.gateway.admin}/api/v1/nodes/n2`);
  const [own] = (await response.json()).plugins;
  const row = rowOf(page, "n2");
  await row.getByText(`own ${own.hash.slice(0, 12)}`).waitFor();
  await row.getByText('Lacks plugin "lacking" of n1').waitFor();
  await row.getByText('Plugin "own" has other code than on n1').waitFor();
  await rowOf(page, "n1").getByText('Plugin "own" has other code than on n2').waitFor();
  await isQuiet(page);
  await screenshots(page, "nodes-plugins");
  expect(await checkAccessible(page)).toEqual([]);
  expect(await page.getByRole("button", { name: /^Actions of/ }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});

test("a saved change names the nodes that serve it, and a missing node is a notice and can be forgotten", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/services/new" });
  const create = async (name: string) => {
    await page.goto(`${scene.gateway.admin}/ui/services/new`);
    await page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
    await page.getByRole("button", { name: "Create" }).click();
  };
  await create("live");
  await page.getByText(/Live on 2 of 2 nodes, revision \d+/).waitFor();
  second.signal("SIGSTOP");
  await create("half");
  // Away, where its last heartbeat was 5 s ago.
  await page
    .getByText(/Live on 1 of 2 nodes, revision \d+. Not live on n2 \((lagging|away)\)/)
    .waitFor();
  await page.getByText("1 of 2 nodes are live").waitFor();
  await page.getByRole("link", { name: "Show the nodes" }).click();
  const row = rowOf(page, "n2");
  await row.getByText("away", { exact: true }).waitFor();
  await row.getByText(/^[1-9]\d* entr(y|ies) behind$/).waitFor();
  await isQuiet(page);
  await screenshots(page, "nodes-away");
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Actions of n2" }).click();
  await page.getByRole("menuitem", { name: "Forget" }).click();
  await page
    .getByRole("dialog")
    .getByText(/Forget node n2\?/)
    .waitFor();
  await screenshots(page, "nodes-forget");
  await page.getByRole("button", { name: "Forget", exact: true }).click();
  await page.getByText("Node n2 forgotten").waitFor();
  await row.waitFor({ state: "detached" });
  await eventually(async () => (await page.getByText("1 of 2 nodes are live").count()) === 0);
  second.signal("SIGCONT");
  await row.getByText("serving", { exact: true }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("a node that cannot serve a change shows the reason, and says so on its own pages", async () => {
  const { page, close } = await scene.openAs("admin", { path: "/ui/fleet" });
  const row = rowOf(page, "n2");
  await row.getByText("serving", { exact: true }).waitFor();
  // The second node on the same machine finds the port taken.
  const data = { name: "site", address: "127.0.0.1", port: quietPort(), protocol: "http" };
  const listeners = `${scene.gateway.admin}/api/v1/listeners`;
  expect((await page.request.post(listeners, { data })).status()).toBe(200);
  await row.getByText("refused", { exact: true }).waitFor();
  await row.getByText(/port \d+ on 127.0.0.1: address already in use/).waitFor();
  await isQuiet(page);
  await screenshots(page, "nodes-refused");
  // Sessions are those of the fleet, and cookies those of the host.
  await page.goto(`${second.admin}/ui/services`);
  await page.getByText("Node n2 cannot serve the next change").waitFor();
  await page.goto(`${scene.gateway.admin}/ui/fleet`);
  expect((await page.request.delete(`${listeners}/site`)).status()).toBe(200);
  await row.getByText("serving", { exact: true }).waitFor();
  await close();
});

test("a node that is cut off says so on every page, since when, and what it means", async () => {
  const { page, close } = await scene.openAs("admin", { path: "/ui/fleet", expects: [503] });
  await rowOf(page, "n2").waitFor();
  await postgres.kill();
  await page.getByText("Node n1 is cut off from the database of the fleet").waitFor();
  await page.getByText(/changes are refused until the database responds/).waitFor();
  await rowOf(page, "n1").getByText("cut off").waitFor();
  await rowOf(page, "n2").getByText("unknown").waitFor();
  expect(await page.getByRole("button", { name: /^Actions of/ }).count()).toBe(0);
  await isQuiet(page);
  await screenshots(page, "nodes-cut-off");
  expect(await checkAccessible(page)).toEqual([]);
  await postgres.start();
  await page
    .getByText("Node n1 is cut off from the database of the fleet")
    .waitFor({ state: "detached" });
  await close();
});
