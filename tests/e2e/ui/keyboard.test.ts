// By keyboard alone: sign-in, a service, a route, search, help, closing, skipping to the content.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { emailOf, isQuiet, useUi, UI_PASSWORD } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  await scene.createPeople();
});

/** The focused element as a screen reader announces it: role or element, and name. */
const focused = (page: Page) =>
  page.evaluate(`(() => {
    const element = document.activeElement;
    const label = element.labels?.[0]?.textContent ?? "";
    const name = element.getAttribute("aria-label") ?? (label !== "" ? label : element.textContent);
    return name.replace(" *", "").trim();
  })()`) as Promise<string>;

/** Presses Tab until something of this name has the focus. */
async function tabTo(page: Page, name: string | RegExp, max = 120): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < max; presses++) {
    await page.keyboard.press("Tab");
    const here = await focused(page);
    if (typeof name === "string" ? here === name : name.test(here)) return;
    seen.push(here);
  }
  throw new Error(`nothing is called ${String(name)}; there are: ${seen.join(", ")}`);
}

/** Whether the focus is visible: an outline, or the border of a field. */
const hasRing = (page: Page) =>
  page.evaluate(`(() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  })()`);

test("from sign-in to a working route, without a mouse", async () => {
  const { page, complaints, close } = await scene.open();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  // The first field has the focus already.
  await page.keyboard.type(emailOf("editor"));
  await page.keyboard.press("Tab");
  await page.keyboard.type(UI_PASSWORD);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  await isQuiet(page);

  await tabTo(page, "Services");
  expect(await hasRing(page)).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Services", exact: true }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("heading", { name: "New service" }).waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("web");
  await tabTo(page, "Host");
  await page.keyboard.type("127.0.0.1");
  await tabTo(page, "Port");
  await page.keyboard.type("3000");
  await page.keyboard.press("Enter");
  await page.getByText("Service web created").waitFor();

  await tabTo(page, "Routes");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Routes", exact: true }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("heading", { name: "New route" }).waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("shop");
  await tabTo(page, "Service");
  await page.keyboard.type("web");
  await page.getByRole("option", { name: "web" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await tabTo(page, "Hosts");
  await page.keyboard.type("shop.example");
  await page.keyboard.press("Enter");
  await tabTo(page, "Create");
  await page.keyboard.press("Enter");
  await page.getByText("Route shop created").waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("/ searches, ? helps, Escape closes, and none of them acts while the user types", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/services" });
  await page.keyboard.press("/");
  expect(await focused(page)).toBe("Search services");
  await page.keyboard.type("we?n/");
  await page.waitForURL("**/ui/services?q=we%3Fn%2F");
  await page.keyboard.press("Escape");
  expect(await focused(page)).not.toBe("Search services");
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await help.waitFor();
  // A key of the page does nothing while a dialog is open.
  await page.keyboard.press("n");
  expect(new URL(page.url()).pathname).toBe("/ui/services");
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
  await page.keyboard.press("n");
  await page.waitForURL("**/ui/services/new");
  expect(complaints).toEqual([]);
  await close();
});

test("the first Tab offers to skip to the content, and a closed menu returns the focus", async () => {
  const { page, close } = await scene.openAs("viewer", { path: "/ui/services" });
  await page.keyboard.press("Tab");
  expect(await focused(page)).toBe("Skip to the content");
  const link = page.locator(".skip-link");
  expect((await link.boundingBox())?.x ?? -1).toBeGreaterThanOrEqual(0);
  await page.keyboard.press("Enter");
  expect(await page.evaluate("document.activeElement.id")).toBe("content");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(`document.activeElement.closest("main") !== null`)).toBe(true);

  await page.keyboard.press("Shift+Tab");
  await tabTo(page, "Your account and colors");
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Your account" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("menuitem", { name: "Your account" }).waitFor({ state: "detached" });
  expect(await focused(page)).toBe("Your account and colors");
  await close();
});
