// Ctrl+K: pages, objects and actions by keyboard alone, and only those of the role.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, isQuiet, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let serviceId: string;

beforeAll(async () => {
  const make = (path: string, body: unknown) => scene.gateway.ok("POST", `/api/v1/${path}`, body);
  ({ id: serviceId } = (await make("services", { name: "storefront" })) as { id: string });
  await make("routes", { name: "store-route", hosts: ["store.test"], service_id: "storefront" });
  await make("secrets", { name: "store-secret", value: "hidden" });
  await scene.createPeople();
});

const options = (page: Page) => page.getByRole("option").allTextContents();

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search pages, objects and actions" }).waitFor();
}

const pathOf = (page: Page) => new URL(page.url()).pathname;

test("an editor finds pages, objects and actions by keyboard alone", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/services" });
  // Also while the user types in a field.
  await page.keyboard.press("/");
  await openPalette(page);
  expect(await checkAccessible(page)).toEqual([]);
  await page.keyboard.type("stream");
  expect(await options(page)).toEqual(["Stream routes page", "New stream route action"]);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Stream routes", level: 1 }).waitFor();

  await openPalette(page);
  await page.keyboard.type("store");
  await eventually(async () => (await options(page)).length === 2);
  expect((await options(page)).toSorted()).toEqual(["store-route route", "storefront service"]);
  expect(await checkAccessible(page)).toEqual([]);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await eventually(() => pathOf(page) === `/ui/services/${serviceId}`);
  await isQuiet(page);

  await openPalette(page);
  await page.keyboard.type("test request");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Test a request" }).waitFor();
  await openPalette(page);
  await page.keyboard.type("store.test/cart");
  await page.getByRole("option", { name: "Test a request to store.test/cart" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/ui/routes/test?url=http%3A%2F%2Fstore.test%2Fcart");
  await page.getByText("store-route").first().waitFor();

  await openPalette(page);
  await page.keyboard.type("nothing has this name");
  await page.getByText("No matches").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("combobox", { name: /^Search pages/ }).waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
  await close();
});

test("a viewer is offered no page that the role cannot open, nothing to create, and no request is refused", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/routes" });
  await page.getByRole("button", { name: /^Search ?Ctrl K$/ }).click();
  await page.getByRole("option", { name: "Routes page", exact: true }).waitFor();
  const all = await options(page);
  expect(all.filter((text) => /^(New|Users|Tokens|Secrets|Audit|Single)/.test(text))).toEqual([]);
  expect(all).toContain("Test a request action");
  await page.keyboard.type("store");
  await page.getByRole("option", { name: "store-route" }).waitFor();
  await eventually(async () => (await page.locator(".mantine-Loader-root").count()) === 0);
  expect((await options(page)).toSorted()).toEqual(["store-route route", "storefront service"]);
  expect(complaints).toEqual([]);
  await close();
});
