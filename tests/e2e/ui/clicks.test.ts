// The clicks that docs/web-ui.md states for tasks, counted while a browser does them.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Locator, Page } from "playwright-core";
import { curl } from "../../support/curl.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { isQuiet, useUi } from "../../support/ui-scene.ts";

const { beforeAll, test, scene } = useUi({
  args: ["--http", `127.0.0.1:${quietPort()}`, "--https", `127.0.0.1:${quietPort()}`],
});
const text = readFileSync(resolve(import.meta.dir, "../../../docs/web-ui.md"), "utf8");
let upstream = "";

beforeAll(async () => {
  await scene.createPeople();
  upstream = `http://127.0.0.1:${scene.serve(() => new Response("it runs")).port}`;
  for (const name of ["photos", "films"])
    await post("applications", {
      name,
      domains: [`${name}.test`],
      upstream,
      https: { mode: "off" },
    });
});

async function post(path: string, body: object): Promise<void> {
  const cookie = await scene.cookieOf("admin");
  const { status } = await scene.gateway.api("POST", `/api/v1/${path}`, body, cookie);
  expect(status).toBe(200);
}

/** The clicks of a task in the table: ours, and those of Nginx Proxy Manager. */
function statedOf(task: string): readonly [number, number] {
  const row = text.split("\n").find((line) => line.startsWith(`| ${task} `)) ?? "";
  const [ours, npm] = row
    .split("|")
    .slice(2)
    .map((cell) => Number(/\d+/.exec(cell)?.[0]));
  return [ours ?? Number.NaN, npm ?? Number.NaN];
}

/** A person with a mouse, who starts at the dashboard and types only into fields that were clicked. */
async function withMouse(task: string, steps: (person: Person) => Promise<void>): Promise<void> {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/dashboard" });
  // Real presses: a label that passes a click on to its input would count twice.
  await page.evaluate(
    `window.presses = 0; addEventListener("pointerdown", ({ isTrusted }) => { if (isTrusted) presses++; }, true);`,
  );
  await steps({
    page,
    click: (at) => at.click(),
    async type(at, words) {
      await at.click();
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.type(words);
    },
  });
  const counted = (await page.evaluate("presses")) as number;
  const [ours, npm] = statedOf(task);
  expect([task, counted]).toEqual([task, ours]);
  expect(counted).toBeLessThanOrEqual(npm);
  expect(complaints).toEqual([]);
  await close();
}

interface Person {
  readonly page: Page;
  readonly click: (at: Locator) => Promise<void>;
  readonly type: (at: Locator, words: string) => Promise<void>;
}

const menu = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true });
const link = (page: Page, name: string) =>
  page.getByRole("main").getByRole("link", { name, exact: true });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const field = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
const saved = (page: Page, name: string) => page.getByText(`Application ${name} saved`).waitFor();

/** A click on the card's switch, whose own input lies over its label. */
async function turnOn(page: Page, name: string): Promise<void> {
  const card = page
    .getByRole("region", { name: "Policies" })
    .getByRole("switch", { name: new RegExp(`^${name}`) });
  await card.evaluate((element) => element.scrollIntoView({ block: "center" }));
  await card.click({ force: true });
}

const visit = async (host: string, path = "/", args: readonly string[] = []) => {
  const port = scene.gateway.httpPort;
  return await curl(`http://${host}:${port}${path}`, [
    ...["--resolve", `${host}:${port}:127.0.0.1`],
    ...args,
  ]);
};

test("a site with HTTPS", () =>
  withMouse("A site with HTTPS", async ({ page, click, type }) => {
    await click(menu(page, "Applications"));
    await click(page.getByRole("link", { name: "New application" }));
    await type(field(page, "Domain"), "wiki.home.arpa");
    await click(button(page, "Next"));
    await type(field(page, "Upstream URL"), upstream);
    await click(button(page, "Next"));
    await click(button(page, "Next"));
    await click(button(page, "Create"));
    await page.getByText("A certificate of the local CA is in use").waitFor();
    const { httpsPort } = scene.gateway;
    const response = await curl(`https://wiki.home.arpa:${httpsPort}/`, [
      ...["--resolve", `wiki.home.arpa:${httpsPort}:127.0.0.1`],
    ]);
    expect(response.text()).toBe("it runs");
  }));

test("a password", () =>
  withMouse("A password for a site", async ({ page, click, type }) => {
    await click(menu(page, "Applications"));
    await click(link(page, "photos"));
    await isQuiet(page);
    await turnOn(page, "Password");
    await type(field(page, "New user"), "anna");
    await type(page.locator('input[type="password"]'), "open sesame");
    await click(button(page, "Save"));
    await saved(page, "photos");
    expect((await visit("photos.test")).status).toBe(401);
    expect((await visit("photos.test", "/", ["--user", "anna:open sesame"])).status).toBe(200);
  }));

test("a response header", () =>
  withMouse("A response header", async ({ page, click, type }) => {
    await click(menu(page, "Applications"));
    await click(link(page, "films"));
    await isQuiet(page);
    await turnOn(page, "Headers");
    await type(page.getByLabel("Response headers: name"), "x-robots-tag");
    await type(page.getByLabel("Response headers: value"), "noindex");
    await click(button(page, "Save"));
    await saved(page, "films");
    await eventually(async () => (await visit("films.test")).header("x-robots-tag") === "noindex");
  }));

test("a redirect from www", () =>
  withMouse("A redirect from www", async ({ page, click, type }) => {
    await click(menu(page, "Applications"));
    await click(page.getByRole("link", { name: "New application" }));
    await type(field(page, "Domain"), "www.films.test");
    await click(button(page, "Next"));
    await click(page.getByText("Redirect", { exact: true }));
    await type(field(page, "Redirect to"), "http://films.test");
    await click(button(page, "Next"));
    await click(button(page, "Next"));
    await page.getByText("redirects to http://films.test").waitFor();
    await click(button(page, "Create"));
    await page.getByRole("heading", { name: "Progress" }).waitFor();
    await page.getByText("www.films.test redirects to http://films.test").waitFor();
    const redirected = await visit("www.films.test", "/a?b=1");
    expect([redirected.status, redirected.header("location")]).toEqual([
      307,
      "http://films.test/a?b=1",
    ]);
  }));

test("a stream", () =>
  withMouse("A TCP port for PostgreSQL", async ({ page, click, type }) => {
    await click(menu(page, "Stream routes"));
    await click(page.getByRole("link", { name: "New stream route" }));
    await click(page.getByRole("combobox", { name: "Program" }));
    await click(page.getByRole("option", { name: "PostgreSQL" }));
    await type(field(page, "Server"), "127.0.0.1");
    await click(button(page, "Create"));
    await page.getByText("Stream postgres created").waitFor();
  }));
