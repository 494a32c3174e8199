// Long lists in the browser: few rows are drawn, filters work, scrolling does not hang.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../../support/poll.ts";
import { isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

const COUNT = 5000;
/** Rows in the window and some before and behind it. */
const MAX_DRAWN = 60;
/** Milliseconds of processor time that each step may take the page: what still feels immediate. */
const MAX_STEP_MS = 100;
/** Objects of each other list: more than are rendered without a window. */
const FEW = 300;

beforeAll(async () => {
  const routes = Array.from({ length: COUNT }, (_, index) => ({
    name: `route-${index}`,
    service_id: "web",
    hosts: [`host-${index}.example.test`],
    tags: index % 500 === 0 ? ["rare"] : [],
  }));
  const services = [{ name: "web" }, { name: "tcp", protocol: "tcp" }];
  await scene.gateway.ok("POST", "/api/v1/import", { format: 1, services, routes });
  await scene.createPeople();
});

const drawn = (page: Page) => page.locator("tbody tr").count();

/** Measures the processor time of the page's main thread, independent of other load on the machine. */
async function startMeter(page: Page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.evaluate(`
    window.tasks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.tasks.push(Math.round(duration));
    }).observe({ type: "longtask" });
  `);
  const worked = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN) * 1000;
  };
  let before = await worked();
  return {
    /** Milliseconds since the last call. */
    async take(): Promise<number> {
      const now = await worked();
      const step = now - before;
      before = now;
      return Math.round(step);
    },
    /** Prints the stretches of more than 50 ms, by the clock, in which the page was blocked. */
    async print(what: string, steps: readonly number[]): Promise<void> {
      const tasks = (await page.evaluate("window.tasks.splice(0)")) as number[];
      const list = tasks.length === 0 ? "none" : `${tasks.length}, up to ${Math.max(...tasks)} ms`;
      console.log(`${what}: ${steps.join(", ")} ms of processor time; long tasks: ${list}`);
    },
  };
}

/** Scrolls from the top to the end in twenty steps; the processor time of each. */
async function scroll(page: Page, meter: Awaited<ReturnType<typeof startMeter>>) {
  const steps: number[] = [];
  for (let step = 1; step <= 20; step++) {
    await page.evaluate(`window.scrollTo(0, document.documentElement.scrollHeight * ${step} / 20)`);
    await page.locator("tbody tr").first().waitFor();
    expect(await drawn(page)).toBeLessThan(MAX_DRAWN);
    steps.push(await meter.take());
  }
  await meter.print("scrolling", steps);
  return steps;
}

test("five thousand routes scroll and filter", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/routes" });
  await page.getByText(`${COUNT} routes`).waitFor();
  await isQuiet(page);
  expect(await drawn(page)).toBeLessThan(MAX_DRAWN);
  expect(await page.getByRole("table", { name: "Routes" }).getAttribute("aria-rowcount")).toBe(
    String(COUNT + 1),
  );
  const meter = await startMeter(page);
  expect(Math.max(...(await scroll(page, meter)))).toBeLessThan(MAX_STEP_MS);
  await eventually(async () => {
    await page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)");
    const last = page.locator(`tbody tr[data-index="${COUNT - 1}"]`);
    return (await last.count()) === 1 && (await last.isVisible());
  });

  await page.evaluate("window.scrollTo(0, 0)");
  await page.keyboard.press("/");
  await meter.take();
  const letters: number[] = [];
  for (const letter of "host-4321.example") {
    await page.keyboard.type(letter);
    letters.push(await meter.take());
  }
  await page.getByText(`1 of ${COUNT} routes`).waitFor();
  await page.getByRole("link", { name: "route-4321", exact: true }).waitFor();
  expect(await drawn(page)).toBe(1);
  letters.push(await meter.take());
  await meter.print("searching, by letter", letters);
  expect(Math.max(...letters)).toBeLessThan(MAX_STEP_MS);
  expect(new URL(page.url()).searchParams.get("q")).toBe("host-4321.example");

  await page.getByRole("button", { name: "Clear the search" }).click();
  await page.getByText(`${COUNT} routes`, { exact: true }).waitFor();
  await meter.take();
  const name = page.getByRole("columnheader", { name: "Name", exact: true });
  const first = page.locator("tbody tr td.is-name a").first();
  await name.getByRole("button").click();
  await eventually(async () => (await name.getAttribute("aria-sort")) === "ascending");
  expect(await first.textContent()).toBe("route-0");
  const sorting = [await meter.take()];
  await name.getByRole("button").click();
  await eventually(async () => (await first.textContent()) === `route-${COUNT - 1}`);
  sorting.push(await meter.take());
  await meter.print("sorting by name, up and down", sorting);
  expect(Math.max(...sorting)).toBeLessThan(MAX_STEP_MS);
  expect(new URL(page.url()).searchParams.get("sort")).toBe("-Name");
  await name.getByRole("button").click();
  await eventually(async () => (await first.textContent()) === "route-0");

  await page.getByText(`${COUNT} routes`, { exact: true }).waitFor();
  await page.getByRole("combobox", { name: "Tag" }).click();
  await page.getByRole("option", { name: "rare" }).waitFor();
  await meter.take();
  await page.getByRole("option", { name: "rare" }).click();
  await page.getByText(`${COUNT / 500} of ${COUNT} routes`).waitFor();
  const names = await page.locator("tbody tr td.is-name a").allInnerTexts();
  expect(names.toSorted()).toEqual(
    Array.from({ length: COUNT / 500 }, (_, index) => `route-${index * 500}`).toSorted(),
  );
  const filtering = await meter.take();
  await meter.print("filtering by a tag", [filtering]);
  expect(filtering).toBeLessThan(MAX_STEP_MS);
  expect(complaints).toEqual([]);

  await page.goto(`${scene.gateway.admin}/ui/routes?q=host-49`);
  await page.getByText(/ of 5000 routes/).waitFor();
  await screenshots(page, "routes-many");
  await close();
});

const tags = ["one", "two"];

/** Each list, what one of its objects is, and how many rows it has then. */
const lists: readonly [string, (index: number) => object, number][] = [
  [
    "services",
    (index) => ({
      name: `service-${index}`,
      tags,
      targets: [9, 10].map((port) => ({ host: "127.0.0.1", port })),
    }),
    FEW + 2,
  ],
  [
    "stream-routes",
    (index) => ({
      name: `stream-${index}`,
      service_id: "tcp",
      protocol: "tcp",
      listen_address: "127.0.0.1",
      listen_port: 20_000,
      sni: [`stream-${index}.example.test`],
      tls_mode: "passthrough",
      tags,
    }),
    FEW,
  ],
  [
    "plugins",
    (index) => ({
      name: "ip-restriction",
      route_id: `route-${index}`,
      config: { deny: ["192.0.2.1"] },
      tags,
    }),
    FEW,
  ],
  // The gateway searches for the others.
  ["consumers", (index) => ({ username: `consumer-${index}`, groups: tags, tags }), 200],
  [
    "applications",
    (index) => ({
      name: `app-${index}`,
      domains: [`app-${index}.example.test`, `www.app-${index}.example.test`],
      upstream: "http://127.0.0.1:9",
      https: { mode: "off" },
    }),
    FEW,
  ],
];

test.each(lists)("a long list of %s scrolls", async (path, objectAt, count) => {
  const objects = Array.from({ length: FEW }, (_, index) => objectAt(index));
  const collection = path.replace("-", "_");
  const cookie = await scene.cookieOf("admin");
  const document = { format: 1, [collection]: objects };
  const imported = await scene.gateway.api("POST", "/api/v1/import", document, cookie);
  expect(imported.status).toBe(200);
  const { page, complaints, close } = await scene.openAs("editor", { path: `/ui/${path}` });
  await page.locator(`table[aria-rowcount="${count + 1}"]`).waitFor();
  await isQuiet(page);
  const meter = await startMeter(page);
  expect(Math.max(...(await scroll(page, meter)))).toBeLessThan(MAX_STEP_MS);
  expect(complaints).toEqual([]);
  await close();
});
