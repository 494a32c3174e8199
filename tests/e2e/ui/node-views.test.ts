// Requests, statistics and health of all nodes of a fleet in the browser: the choice of nodes, and who is missing.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { changingClock, fakeTime } from "../../support/faketime.ts";
import { TestFleet } from "../../support/fleet.ts";
import type { Gateway } from "../../support/gateway.ts";
import { startLastingOrigin } from "../../support/lasting-clients.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  isQuiet,
  openUi,
  screenshots,
  type UiScene,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, test } = needs(
  "executable",
  "chromium",
  "postgres",
  "network namespaces",
  fakeTime,
);

const directory = mkdtempSync(join(tmpdir(), "sluice-node-views-"));
/** The clock of n3. */
const clockFile = join(directory, "clock");

let fleet: TestFleet;
let scene: UiScene;
/** Of an admin. */
let token: string;
let origin: ReturnType<typeof startLastingOrigin>;

beforeAll(async () => {
  writeFileSync(clockFile, "+0s");
  fleet = await TestFleet.start(3, {
    networks: true,
    node: (name) => (name === "n3" ? { env: changingClock(clockFile) } : {}),
  });
  origin = startLastingOrigin(fleet.hostname);
  const [first] = fleet.nodes as [Gateway];
  const targets = [{ host: fleet.hostname, port: origin.port }];
  await first.ok("POST", "/api/v1/services", { name: "site", targets });
  await first.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  await eventually(
    async () => (await first.ok("GET", "/api/v1/stats?node=all")).nodes.length === 3,
  );
  scene = await openUi(first);
  ({ token } = await first.ok("POST", "/api/v1/tokens", { name: "admin", role: "admin" }));
  await scene.createPeople();
});
afterAll(async () => {
  // Before its fleet: it stops its gateway.
  for (const node of fleet?.nodes ?? []) node.signal("SIGCONT");
  await scene?.stop();
  await fleet?.stop();
  await origin?.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

const request = async (number: number, path: string) =>
  await (await fetch(`http://${fleet.addresses[number - 1]}:8080${path}`)).text();

const rowsOf = (page: Page) => page.locator("tr.request-row");
const choose = async (page: Page, label: string) => {
  await page.getByRole("combobox", { name: "Nodes" }).click();
  await page.getByRole("option", { name: label }).click();
};

test("requests of all nodes appear with their node; one node can be chosen, also by the URL", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/requests" });
  for (const number of [1, 2, 3, 2]) await request(number, `/of-n${number}`);
  await eventually(async () => (await rowsOf(page).count()) === 4);
  await rowsOf(page).filter({ hasText: "/of-n3" }).getByText("n3", { exact: true }).waitFor();
  await isQuiet(page);
  await screenshots(page, "requests-nodes");
  expect(await checkAccessible(page)).toEqual([]);
  await choose(page, "n2");
  await eventually(async () => (await rowsOf(page).count()) === 2);
  expect(page.url()).toContain("node=n2");
  await page.reload();
  await eventually(async () => (await rowsOf(page).count()) === 2);
  await rowsOf(page).first().click();
  const drawer = page.getByRole("dialog");
  await drawer.getByText("n2", { exact: true }).waitFor();
  // The row need not be loaded.
  const open = new URL(page.url()).searchParams.get("open");
  await page.goto(`${scene.gateway.admin}/ui/requests?open=${open}&q=nothing`);
  await drawer.getByText("n2", { exact: true }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("the dashboard shows the sum of the nodes, and a service the nodes that see a target differently", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/" });
  await page.getByRole("combobox", { name: "Nodes" }).waitFor();
  await page.getByRole("table", { name: "Nodes" }).getByRole("row").nth(3).waitFor();
  await isQuiet(page);
  await screenshots(page, "dashboard-nodes");
  expect(await checkAccessible(page)).toEqual([]);
  await fleet.createSplitService("split", { authorization: `Bearer ${token}` });
  await page.goto(`${scene.gateway.admin}/ui/services/split`);
  const target = page.getByRole("article", { name: /^Target/ });
  await target.getByText(/^on node n2, since/).waitFor();
  expect(await target.getByText(/^on node/).count()).toBe(1);
  await isQuiet(page);
  await screenshots(page, "service-node-health");
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});

test("a node that does not respond is named on each page, until it is back", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/requests" });
  const third = fleet.nodes[2] as Gateway;
  // Its minute ends, and is stored.
  writeFileSync(clockFile, "+60s");
  await eventually(async () => {
    await third.api("GET", "/api/v1/stats", undefined, { authorization: `Bearer ${token}` });
    const rows = await fleet.query(
      async (sql) =>
        await sql`select 1 from sluice.rollup join sluice.node on node.id = rollup.node where name = 'n3'`,
    );
    return rows.length > 0;
  });
  third.signal("SIGSTOP");
  const notice = page.getByText("Without n3", { exact: true });
  for (const path of ["/ui/requests", "/", "/ui/services/site"]) {
    await page.goto(`${scene.gateway.admin}${path}`);
    // The dashboard has the history that n3 has stored.
    const last = page.getByText("The last minute is without n3", { exact: true });
    await (path === "/" ? last : notice).waitFor();
    await page.getByText("n3: it did not respond within 1 s").waitFor();
    if (path === "/") await screenshots(page, "dashboard-node-missing");
  }
  third.signal("SIGCONT");
  await page.goto(`${scene.gateway.admin}/ui/requests`);
  await notice.waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
  await close();
});
