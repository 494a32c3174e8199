// The dashboard in a browser: what to do first, then traffic as plots and tables, and what needs attention, as it happens.
import { expect } from "bun:test";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { quickGet } from "../../support/quick-http.ts";
import { quietPort } from "../../support/quiet-port.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  startUi,
  type UiScene,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium");

let scene: UiScene;
let origin: Bun.Server<undefined>;

beforeAll(async () => {
  scene = await startUi();
  origin = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      new Response("hello", { status: new URL(request.url).pathname === "/broken" ? 500 : 200 }),
  });
});
afterAll(async () => {
  await scene?.stop();
  await origin?.stop(true);
});

const get = (path = "/") => quickGet(scene.gateway.httpPort, { host: "shop.test", path });

test("an empty gateway shows the first steps", async () => {
  const { page, complaints, close } = await scene.open({ path: "/" });
  // Without users, the first page creates the first administrator.
  await page.getByRole("heading", { name: "Create the first administrator" }).waitFor();
  await close();
  await scene.createPeople();
  const admin = await scene.openAs("admin");
  const steps = admin.page.getByRole("region", { name: "First steps" });
  await steps.getByRole("link", { name: "Add an application" }).waitFor();
  expect(await steps.getByLabel("Done").count()).toBe(1);
  expect(await checkAccessible(admin.page)).toEqual([]);
  await screenshots(admin.page, "dashboard-empty");
  const viewer = await scene.openAs("viewer");
  await viewer.page.getByRole("region", { name: "First steps" }).waitFor();
  expect(await viewer.page.getByRole("link", { name: "Add an application" }).count()).toBe(0);
  expect([...complaints, ...admin.complaints, ...viewer.complaints]).toEqual([]);
  await Promise.all([admin.close(), viewer.close()]);
}, 60_000);

test("traffic appears as figures, plots and tables; unhealthy targets and changes appear automatically", async () => {
  const { page, complaints, close } = await scene.openAs("admin");
  await page.getByRole("region", { name: "First steps" }).waitFor();
  const dead = quietPort();
  await page.evaluate(
    async ([port, deadPort]) => {
      const make = async (path: string, body: object) => {
        const headers = { "content-type": "application/json" };
        const init = { method: "POST", headers, body: JSON.stringify(body) };
        const answer = await fetch(`/api/v1/${path}`, init);
        if (!answer.ok) throw new Error(await answer.text());
      };
      const host = "127.0.0.1";
      await make("services", { name: "web", targets: [{ host, port }] });
      await make("routes", { name: "shop", hosts: ["shop.test"], service_id: "web" });
      const active = { enabled: true, type: "tcp", interval: 1, unhealthy_threshold: 1 };
      await make("services", {
        name: "fallen",
        health: { active },
        targets: [{ host, port: deadPort }],
      });
      await make("certificates", {
        name: "short",
        source: "self_signed",
        domains: ["shop.test"],
      });
    },
    [origin.port, dead],
  );
  // Events update the page without a reload.
  await page.getByText('create service "fallen"').waitFor();
  await page
    .getByRole("region", { name: "Unhealthy targets" })
    .getByText(`127.0.0.1:${dead}`)
    .waitFor({ timeout: 15_000 });
  for (let index = 0; index < 40; index++) await get(index % 4 === 0 ? "/broken" : "/");

  await page.goto(`${scene.gateway.admin}/`);
  await isQuiet(page);
  const failed = page.getByRole("group", { name: "Failed (5xx)" });
  await eventually(async () => (await failed.textContent())?.includes("10 of 40"));
  expect(await failed.textContent()).toContain("25 %");
  const busiest = page.getByRole("region", { name: "Top traffic" });
  await busiest.getByRole("link", { name: "shop" }).waitFor();
  expect(await busiest.textContent()).toContain("40");
  await page.getByRole("img", { name: /^Requests per second over time/ }).waitFor();
  await page.getByRole("img", { name: /5xx: server errors: 25 %/ }).waitFor();
  expect(await page.getByRole("region", { name: "First steps" }).count()).toBe(0);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "dashboard");
  // The page updates automatically.
  for (let index = 0; index < 60; index++) await get();
  await eventually(async () => (await failed.textContent())?.includes("10 of 100"), {
    deadlineMs: 15_000,
  });

  await page.getByRole("button", { name: "Latency: show a table" }).click();
  await page.getByRole("region", { name: "Latency as a table" }).getByText("p99").waitFor();
  for (const [label, range] of [
    ["Day", "24h"],
    ["30 days", "30d"],
  ] as const) {
    await page.getByText(label, { exact: true }).click();
    await eventually(() => new URL(page.url()).searchParams.get("range") === range);
    await eventually(async () => (await busiest.textContent())?.includes("100"));
  }
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
}, 60_000);
