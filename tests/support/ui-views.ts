// Every page and dialog of the web UI over a filled gateway (filled-gateway.ts), and how to get there; for screenshots and axe.
import type { Page } from "playwright-core";
import { type ResourceKey, resources } from "../../src/ui/api/resources.ts";
import { pagePath } from "../../src/ui/page-path.ts";
import { pages } from "../../src/ui/pages.ts";
import { isQuiet } from "./ui-scene.ts";

export interface View {
  readonly name: string;
  readonly path: string;
  /** What to do on the page first, such as opening a dialog. */
  readonly prepare?: (page: Page) => Promise<unknown>;
  /** Whether viewers have no such button or field. */
  readonly needsEditor?: true;
}

export const lists = pages.map(({ path }): View => ({ name: path, path: pagePath(path) }));
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

const more: readonly View[] = [
  ...withObjects.map(({ path }): View => ({ name: `${path}-new`, path: pagePath(path, "new") })),
  ...[1, 2, 3].map((step): View => ({
    name: `applications-new-step-${step + 1}`,
    path: pagePath("applications", "new"),
    prepare: (page) => toStep(page, step),
    needsEditor: true,
  })),
  {
    name: "routes-test",
    path: `${pagePath("routes", "test")}?url=${encodeURIComponent("http://shop.test/page/1")}`,
  },
  {
    name: "routes-new-errors",
    needsEditor: true,
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
    needsEditor: true,
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
async function objectViews(page: Page): Promise<readonly View[]> {
  const first = async (key: string) =>
    (await page.evaluate(
      async (path) => ((await (await fetch(`/api/v1/${path}`)).json()) as { id: string }[])[0]?.id,
      key,
    )) ?? null;
  const views: View[] = [];
  for (const { path } of withObjects) {
    const id = await first(keyOf(path));
    if (id !== null) views.push({ name: `${path}-object`, path: pagePath(path, id) });
  }
  return views;
}

/** All of them, as a signed-in user's page finds the objects. */
export const allViews = async (page: Page): Promise<readonly View[]> => [
  ...lists,
  ...more,
  ...(await objectViews(page)),
];
