// The dashboard in a browser: what to do first, then traffic as plots and tables, and what needs attention, as it happens.
import { expect } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import type { Page } from "playwright-core";
import { eventually } from "../../support/poll.ts";
import { quickGet } from "../../support/quick-http.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;

beforeAll(async () => {
  origin = scene.serve(
    (request) =>
      new Response("hello", { status: new URL(request.url).pathname === "/broken" ? 500 : 200 }),
  );
});

const KEY = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

/** With the session of the page. */
const read = (page: Page, path: string) =>
  page.evaluate(async (where) => await (await fetch(`/api/v1/${where}`)).json(), path);

const write = (page: Page, path: string, content: object) =>
  page.evaluate(
    async ([where, body]) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`/api/v1/${where}`, { method: "POST", headers, body });
      if (!answer.ok) throw new Error(await answer.text());
    },
    [path, JSON.stringify(content)] as const,
  );

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
});

test("certificates that wait for terms of service are one entry, and one confirmation agrees for all", async () => {
  const { page, complaints, close } = await scene.openAs("admin");
  const names = Array.from({ length: 10 }, (_, index) => `site-${index}`);
  const document = {
    format: 1,
    acme_accounts: [
      {
        name: "imported",
        directory_url: "https://127.0.0.1:9/dir",
        terms_agreed: false,
        sealed_key: { plain: KEY },
      },
    ],
    certificates: names.map((name) => ({
      name,
      source: "acme",
      domains: [`${name}.example`],
      acme_account_ids: ["imported"],
    })),
  };
  await write(page, "import", document);
  const attention = page.getByRole("region", { name: "Needs attention" });
  await attention
    .getByText("10 certificates wait for the terms of service of ACME account imported")
    .waitFor();
  expect(await attention.getByRole("link", { name: /^site-/ }).count()).toBe(3);
  await attention.getByRole("button", { name: "Show all 10" }).click();
  expect(await attention.getByRole("link", { name: /^site-/ }).count()).toBe(10);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "dashboard-attention");

  const viewer = await scene.openAs("viewer");
  await viewer.page.getByText("10 certificates wait").waitFor();
  expect(await viewer.page.getByRole("button", { name: /^Agree/ }).count()).toBe(0);
  await viewer.close();

  await attention.getByRole("button", { name: "Agree to the terms for 10 certificates" }).click();
  await page.getByRole("button", { name: "Agree and request" }).click();
  await page.getByText("10 certificates requested").waitFor();
  const [account] = (await read(page, "acme/accounts")) as { terms_agreed: boolean }[];
  expect(account?.terms_agreed).toBe(true);
  // Nothing listens at the address of this CA.
  await attention.getByRole("button", { name: "Retry all 10" }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("traffic appears as figures, plots and tables; unhealthy targets and changes appear automatically", async () => {
  const { page, complaints, close } = await scene.openAs("admin");
  await page.getByRole("region", { name: "First steps" }).waitFor();
  const dead = quietPort();
  const host = "127.0.0.1";
  await write(page, "services", { name: "web", targets: [{ host, port: origin.port }] });
  await write(page, "routes", { name: "shop", hosts: ["shop.test"], service_id: "web" });
  const active = { enabled: true, type: "tcp", interval: 1, unhealthy_threshold: 1 };
  await write(page, "services", {
    name: "fallen",
    health: { active },
    targets: [{ host, port: dead }],
  });
  await write(page, "certificates", {
    name: "short",
    source: "self_signed",
    domains: ["shop.test"],
  });
  // Events update the page without a reload.
  await page.getByText('create service "fallen"').waitFor();
  await page
    .getByRole("region", { name: "Needs attention" })
    .getByText(`127.0.0.1:${dead}`)
    .waitFor();
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
  await eventually(async () => (await failed.textContent())?.includes("10 of 100"));

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
});
