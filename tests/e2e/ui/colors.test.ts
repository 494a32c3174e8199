// Light and dark: the whole page follows the system's choice and the user's at once; checked on one page.
import { expect } from "bun:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { checkAccessible, hasScheme, isQuiet, SCREENSHOTS, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  await scene.gateway.ok("POST", "/api/v1/services", {
    name: "web",
    targets: [{ host: "127.0.0.1", port: 9 }],
  });
  await scene.createPeople();
});

/** Elements that still have the text color of the other scheme, and running transitions. */
const left = async (page: Page, old: string) =>
  (await page.evaluate(`({
    stale: [...document.querySelectorAll("body *")]
      .filter((element) => getComputedStyle(element).color === ${JSON.stringify(old)})
      .map((element) => element.outerHTML.slice(0, 80)),
    running: document.getAnimations().length,
  })`)) as { readonly stale: readonly string[]; readonly running: number };

const textColor = async (page: Page) =>
  (await page.evaluate("getComputedStyle(document.body).color")) as string;

test("when the system changes, all text changes at once, not one level of the page at a time", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/services" });
  for (const scheme of ["dark", "light", "dark", "light"] as const) {
    const old = await textColor(page);
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await hasScheme(page, scheme);
    expect(await textColor(page)).not.toBe(old);
    expect(await left(page, old)).toEqual({ stale: [], running: 0 });
  }
  expect(complaints).toEqual([]);
  await close();
});

test("a chosen color scheme applies to browser controls too, and after a reload", async () => {
  const { page, close } = await scene.openAs("viewer", { path: "/ui/services" });
  const drawnAs = async () =>
    (await page.evaluate("getComputedStyle(document.documentElement).colorScheme")) as string;
  await page.getByRole("button", { name: "Your account and colors" }).press("Enter");
  const choice = page.getByRole("menuitemradio", { name: "Dark" });
  expect(await choice.getAttribute("aria-checked")).toBe("false");
  expect(await checkAccessible(page)).toEqual([]);
  await page.screenshot({ path: join(SCREENSHOTS, "user-menu.png") });
  // The first one has the focus: account, light, dark.
  for (let step = 0; step < 2; step++) await page.keyboard.press("ArrowDown");
  expect(await choice.evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await hasScheme(page, "dark");
  expect(await drawnAs()).toBe("dark");
  await page.reload();
  await isQuiet(page);
  await hasScheme(page, "dark");
  expect(await drawnAs()).toBe("dark");
  await close();
});

test.each(["light", "dark"] as const)(
  "menu items are readable in %s, also while hovered",
  async (scheme) => {
    const { page, complaints, close } = await scene.openAs("admin", {
      path: "/ui/services",
      dark: scheme === "dark",
    });
    const look = async (opener: string, last: string) => {
      await page.getByRole("button", { name: opener }).click();
      await page.getByRole("menuitem", { name: last }).waitFor();
      expect([opener, await checkAccessible(page)]).toEqual([opener, []]);
      await page.getByRole("menuitem", { name: last }).hover();
      expect([last, await checkAccessible(page)]).toEqual([last, []]);
      await page.keyboard.press("Escape");
    };
    await look("Actions of web", "Delete");
    await page.getByRole("link", { name: "web", exact: true }).click();
    await page.getByRole("button", { name: "Add a target" }).waitFor();
    await look("Actions of 127.0.0.1:9", "Remove");
    expect(complaints).toEqual([]);
    await close();
  },
);
