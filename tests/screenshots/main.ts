// Screenshots of every page of the web UI in light and dark, at 1440 and 380 pixels, into dist/screenshots; with --guide those of
// docs/web-ui.md.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { type ResourceKey, resources } from "../../src/ui/api/resources.ts";
import { pagePath } from "../../src/ui/page-path.ts";
import { pages } from "../../src/ui/pages.ts";
import { fillGateway } from "../support/filled-gateway.ts";
import { shootGuide } from "./guide.ts";
import { hasScheme, isQuiet, SCREENSHOTS, startUi, type UiScene } from "../support/ui-scene.ts";

interface Shot {
  readonly name: string;
  readonly path: string;
  /** What to do on the page first, such as opening a dialog. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

const WIDTHS = [1440, 380];
const SCHEMES = ["light", "dark"] as const;

async function shoot(page: Page, origin: string, { name, path, prepare }: Shot): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${origin}${path}`);
    await isQuiet(page);
    await prepare?.(page);
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await hasScheme(page, colorScheme);
      await isQuiet(page);
      // The whole page as one window: what sticks to its edge would cover the content otherwise.
      const height = (await page.evaluate("document.documentElement.scrollHeight")) as number;
      await page.setViewportSize({ width, height });
      await page.screenshot({
        path: join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`),
      });
    }
  }
}

async function shootAll(page: Page, scene: UiScene, shots: readonly Shot[]): Promise<void> {
  for (const shot of shots) {
    // The leave guard asks before unsaved input is lost.
    await page.evaluate("sessionStorage.clear()");
    await shoot(page, scene.gateway.admin, shot);
    console.log(shot.name);
  }
}

const lists = pages.map(({ path }): Shot => ({ name: path, path: pagePath(path) }));
const withObjects = pages.filter(({ path }) => Object.hasOwn(resources, keyOf(path)));

function keyOf(path: string): ResourceKey {
  return (path === "acme-accounts" ? "acme/accounts" : path) as ResourceKey;
}

const press = (name: string | RegExp) => (page: Page) =>
  page.getByRole("main").getByRole("button", { name }).first().click();

async function toStep(page: Page, step: number): Promise<void> {
  const field = (name: string) => page.getByRole("textbox", { name, exact: true });
  if (step === 0) return;
  await field("Domain").fill("shop.example.com");
  await press("Next")(page);
  if (step === 1) return;
  await field("Upstream URL").fill("http://127.0.0.1:9");
  for (let each = 1; each < step; each++) await press("Next")(page);
  await isQuiet(page);
}

const more: readonly Shot[] = [
  ...withObjects.map(({ path }): Shot => ({ name: `${path}-new`, path: pagePath(path, "new") })),
  ...[1, 2, 3].map((step): Shot => ({
    name: `applications-new-step-${step + 1}`,
    path: pagePath("applications", "new"),
    prepare: (page) => toStep(page, step),
  })),
  {
    name: "routes-test",
    path: `${pagePath("routes", "test")}?url=${encodeURIComponent("http://shop.test/page/1")}`,
  },
  {
    name: "routes-new-errors",
    path: pagePath("routes", "new"),
    prepare: async (page) => {
      await page.getByRole("combobox", { name: "Hosts" }).fill("no host");
      await page.keyboard.press("Enter");
      await press("Create")(page);
    },
  },
  { name: "export-import-import", path: `${pagePath("export-import")}?tab=import` },
  { name: "revisions-3", path: pagePath("revisions", "3") },
  { name: "plugins-new-rate-limit", path: `${pagePath("plugins", "new")}?plugin=rate-limit` },
  { name: "plugins-order", path: pagePath("plugins"), prepare: press("Execution order") },
  {
    name: "requests-drawer",
    path: pagePath("requests"),
    prepare: (page) => page.locator("tr.request-row").first().click(),
  },
  {
    name: "services-delete",
    path: pagePath("services"),
    prepare: async (page) => {
      await page.getByRole("button", { name: "Actions of web" }).click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await page
        .getByText(/is used by/)
        .first()
        .waitFor();
    },
  },
  {
    name: "menu",
    path: "/",
    prepare: async (page) => {
      const burger = page.getByRole("button", { name: "Open the menu" });
      if (await burger.isVisible()) await burger.click();
    },
  },
  {
    name: "palette",
    path: "/",
    prepare: async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: /^Search pages/ }).fill("shop");
      await page
        .getByRole("option", { name: /route$/ })
        .first()
        .waitFor();
    },
  },
  { name: "not-found", path: "/ui/routing" },
];

/** The page of the first object of each resource. */
async function objectShots(page: Page): Promise<readonly Shot[]> {
  const first = async (key: string) =>
    (await page.evaluate(
      async (path) => ((await (await fetch(`/api/v1/${path}`)).json()) as { id: string }[])[0]?.id,
      key,
    )) ?? null;
  const shots: Shot[] = [];
  for (const { path } of withObjects) {
    const id = await first(keyOf(path));
    if (id !== null) shots.push({ name: `${path}-object`, path: pagePath(path, id) });
  }
  return shots;
}

async function shootEmpty(): Promise<void> {
  const scene = await startUi();
  try {
    const opened = await scene.open();
    await shootAll(opened.page, scene, [{ name: "first-run", path: "/" }]);
    await scene.createPeople();
    await shootAll(opened.page, scene, [{ name: "sign-in", path: "/" }]);
    await opened.close();
    const { page } = await scene.openAs("admin");
    await shootAll(
      page,
      scene,
      lists.map((shot) => ({ ...shot, name: `${shot.name}-empty` })),
    );
  } finally {
    await scene.stop();
  }
}

async function shootFilled(): Promise<void> {
  const origin = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("shop") });
  const scene = await startUi();
  try {
    await fillGateway(scene.gateway, origin.port ?? 0);
    await scene.createPeople();
    const { page } = await scene.openAs("admin");
    await shootAll(page, scene, [...lists, ...more, ...(await objectShots(page))]);
    const viewer = await scene.openAs("viewer");
    await shootAll(viewer.page, scene, [
      { name: "viewer-dashboard", path: "/" },
      { name: "viewer-routes", path: pagePath("routes") },
      { name: "viewer-routes-new", path: pagePath("routes", "new") },
    ]);
  } finally {
    await scene.stop();
    await origin.stop(true);
  }
}

if (process.argv.includes("--guide")) await shootGuide();
else {
  rmSync(SCREENSHOTS, { recursive: true, force: true });
  mkdirSync(SCREENSHOTS, { recursive: true });
  await shootEmpty();
  await shootFilled();
  console.log(`screenshots: ${SCREENSHOTS}`);
}
