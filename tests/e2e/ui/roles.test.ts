// Viewer, editor and admin on every page of the table: each sees permitted actions, and none that the API rejects.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { type ResourceKey, resources } from "../../../src/ui/api/resources.ts";
import { pagePath } from "../../../src/ui/page-path.ts";
import { type PageEntry, pages } from "../../../src/ui/pages.ts";
import { listen, pressAll } from "../../support/ui-walk.ts";
import { checkAccessible, follow, isQuiet, useUi, type UiRole } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

const ROLES = ["viewer", "editor", "admin"] as const;
const rank = (role: string) => ROLES.indexOf(role as UiRole);

/** One object of each kind, so that no list is empty; `service_id` is filled in. */
const objects: Partial<Record<string, object>> = {
  services: { name: "web", targets: [{ host: "127.0.0.1", port: 3000 }] },
  routes: { name: "shop", hosts: ["shop.example"] },
  consumers: { username: "ann" },
  plugins: { name: "cors", config: {} },
  "dns-providers": { name: "dns", type: "manual", config: {} },
  tokens: { name: "deploy", role: "viewer" },
  secrets: { name: "key", value: "canary" },
};

/** Ids by resource. */
const ids: Record<string, string> = {};

beforeAll(async () => {
  await scene.createPeople();
  const admin = await scene.cookieOf("admin");
  for (const [resource, object] of Object.entries(objects)) {
    const body = resource === "routes" ? { ...object, service_id: ids["services"] } : object;
    const made = await scene.gateway.api("POST", `/api/v1/${resource}`, body, admin);
    // Pages of kinds that this gateway lacks are opened empty.
    if (made.status === 200) ids[resource] = ((await made.json()) as { id: string }).id;
  }
  const key = { type: "key", name: "of ann" };
  const kept = await scene.gateway.api("POST", "/api/v1/consumers/ann/credentials", key, admin);
  expect(kept.status).toBe(200);
  const read = async (path: string) =>
    (await (await scene.gateway.api("GET", `/api/v1/${path}`, undefined, admin)).json()) as {
      id: string;
    }[];
  ids["listeners"] = (await read("listeners"))[0]?.id ?? "";
  ids["users"] = (await read("users"))[0]?.id ?? "";
});

/** Resources that have a page of their own, by its path. */
const resourceOf = ({ path }: PageEntry): ResourceKey | null => {
  const key = path === "acme-accounts" ? "acme/accounts" : path;
  return Object.hasOwn(resources, key) ? (key as ResourceKey) : null;
};

const addressesOf = (entry: PageEntry): string[] => {
  const id = ids[entry.path];
  return [pagePath(entry.path), ...(id === undefined ? [] : [pagePath(entry.path, id)])];
};

test.each(ROLES)(
  "the navigation of a %s leads to the pages of that role and no others",
  async (role) => {
    const { page, close } = await scene.openAs(role);
    const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    const shown = await links.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    const listed = pages.filter((entry) => entry.isListed === undefined);
    expect(shown.toSorted()).toEqual(
      listed
        .filter((entry) => rank(role) >= rank(entry.role))
        .map(({ path }) => pagePath(path))
        .toSorted(),
    );
    for (const { path, title, role: needed } of listed.filter(
      (entry) => rank(role) < rank(entry.role),
    )) {
      await follow(page, pagePath(path));
      await page.getByText(`This page needs the role ${needed}; yours is ${role}.`).waitFor();
      expect(await page.locator("h1").textContent()).toBe(title);
    }
    await close();
  },
);

test("the navigation of an admin fits into 900 pixels, with every entry", async () => {
  const { page, close } = await scene.openAs("admin", { width: 1440, height: 900 });
  const navigation = page.getByRole("navigation", { name: "Pages" });
  // Without a fleet, one entry is not listed: the height of another one stands for it.
  const last = await navigation.getByRole("link").last().boundingBox();
  if (last === null) throw new Error("there is no entry");
  expect(last.y + 2 * last.height).toBeLessThanOrEqual(900);
  expect(last.height).toBeGreaterThanOrEqual(24);
  await close();
});

test("the gateway answers every spelling of a page's URL, and unknown ones name similar pages", async () => {
  const { page, complaints, close } = await scene.openAs("viewer");
  for (const path of ["/ui", "/ui/", "/ui/dashboard"]) {
    await page.goto(`${scene.gateway.admin}${path}`);
    await page.getByRole("heading", { name: "Dashboard", exact: true }).waitFor();
    const current = page.getByRole("navigation").locator('[aria-current="page"]');
    expect([path, await current.textContent()]).toEqual([path, "Dashboard"]);
  }
  for (const { path, title } of pages.filter(({ role }) => role === "viewer")) {
    await page.goto(`${scene.gateway.admin}/ui/${path}/`);
    await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
  }
  await page.goto(`${scene.gateway.admin}/ui/routing/of/a/b%zz`);
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
  await page.getByRole("main").getByRole("link", { name: "Stream routes" }).click();
  await page.getByRole("heading", { name: "Stream routes", level: 1 }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test.each(ROLES)(
  "a %s sees exactly the create, select and switch controls of the role",
  async (role) => {
    const { page, complaints, close } = await scene.openAs(role);
    const { refused } = listen(page);
    for (const entry of pages.filter(({ role: needed }) => rank(role) >= rank(needed))) {
      const resource = resourceOf(entry);
      if (resource === null) continue;
      await follow(page, pagePath(entry.path));
      const mayWrite = rank(role) >= rank(resources[resource].writes);
      const creates = page.locator("main").getByRole("link", { name: /^(New|Create|Add) / });
      expect([entry.path, (await creates.count()) > 0]).toEqual([entry.path, mayWrite]);
      const boxes = page.locator("main").getByRole("checkbox");
      if (!mayWrite) expect([entry.path, await boxes.count()]).toEqual([entry.path, 0]);
    }
    expect(refused).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
  },
);

/** What the page shows besides the navigation, without ids. */
const contentOf = async (page: Page) =>
  ((await page.evaluate("document.querySelector('main').outerHTML")) as string).replaceAll(
    / (id|for|href|name|aria-controls|aria-labelledby|aria-describedby)="[^"]*"/g,
    "",
  );

/** Roles see the same content on many pages: that of one is checked for all. */
const checked = new Set<string>();

test.each(ROLES)(
  "axe-core finds nothing on any page, list, object or form of a %s",
  async (role) => {
    const { page, complaints, close } = await scene.openAs(role);
    let checks = 0;
    for (const entry of pages.filter(({ role: needed }) => rank(role) >= rank(needed)))
      for (const address of [
        ...addressesOf(entry),
        ...(resourceOf(entry) === null ? [] : [pagePath(entry.path, "new")]),
      ]) {
        await follow(page, address);
        const content = await contentOf(page);
        if (checked.has(content)) continue;
        expect([address, await checkAccessible(page)]).toEqual([address, []]);
        checked.add(content);
        checks++;
      }
    // The navigation of each role is checked as well.
    expect(checks).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
    await close();
  },
);

/** What changes something, or leads to a form that does. */
const offersOf = (page: Page) => {
  const buttons = page.getByRole("button", { name: /^(Save|Create|Delete|Restore|Import|Fill)\b/ });
  return buttons.or(page.locator("main").getByRole("link", { name: /^(New|Create|Add|Clone)\b/ }));
};

test("no button that a viewer can press is rejected or changes anything", async () => {
  const { page, close } = await scene.openAs("viewer");
  const { writes, refused } = listen(page);
  for (const entry of pages.filter(({ role, path }) => role === "viewer" && path !== "account"))
    for (const address of addressesOf(entry)) {
      await page.goto(`${scene.gateway.admin}${address}`);
      await isQuiet(page);
      expect([address, await offersOf(page).count()]).toEqual([address, 0]);
      await pressAll(page);
      const fields = page.locator("main fieldset:not(:disabled) :is(input, textarea, select)");
      if (address !== pagePath(entry.path) && resourceOf(entry) !== null)
        expect([address, await fields.count()]).toEqual([address, 0]);
    }
  expect(refused).toEqual([]);
  // Every role may use the route test.
  expect(writes.filter((line) => line !== "POST /api/v1/routes/explain")).toEqual([]);
  await close();
});

test.each(["viewer", "editor"] as const)(
  "a %s is shown no form for new objects that the role may not create",
  async (role) => {
    const { page, complaints, close } = await scene.openAs(role);
    const { writes } = listen(page);
    for (const entry of pages.filter(({ role: needed }) => rank(role) >= rank(needed))) {
      const resource = resourceOf(entry);
      if (resource === null) continue;
      await follow(page, pagePath(entry.path, "new"));
      const needed = resources[resource].writes;
      const isRefused = rank(role) < rank(needed);
      const refusal = page.getByText(`needs the role ${needed}; yours is ${role}.`);
      expect([entry.path, await refusal.count()]).toEqual([entry.path, isRefused ? 1 : 0]);
      const inputs = page.locator("main :is(input, textarea, select, form)");
      if (isRefused) expect([entry.path, await inputs.count()]).toEqual([entry.path, 0]);
    }
    expect(writes).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
  },
);

test("an editor cannot save what only admins may change", async () => {
  const { page, close } = await scene.openAs("editor");
  const { writes, refused } = listen(page);
  const theirs = pages.filter((entry) => {
    const resource = resourceOf(entry);
    const isAdmins = resource !== null && resources[resource].writes === "admin";
    return (
      entry.role !== "admin" && (isAdmins || ["gateway-settings", "revisions"].includes(entry.path))
    );
  });
  expect(theirs.length).toBeGreaterThan(2);
  for (const entry of theirs)
    for (const address of addressesOf(entry)) {
      await page.goto(`${scene.gateway.admin}${address}`);
      await isQuiet(page);
      expect([address, await offersOf(page).count()]).toEqual([address, 0]);
      await pressAll(page);
    }
  expect(refused).toEqual([]);
  expect(writes).toEqual([]);
  await close();
});
