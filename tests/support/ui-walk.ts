// Presses every button of a page and records sent and rejected requests; works on any page.
import type { Locator, Page } from "playwright-core";
import { isQuiet } from "./ui-scene.ts";

/** Every request that could change something, and every response with these status codes. */
export function listen(page: Page, statuses: readonly number[] = [403]) {
  const writes: string[] = [];
  const refused: string[] = [];
  page.on("request", (request) => {
    const path = new URL(request.url()).pathname;
    if (!["GET", "HEAD"].includes(request.method())) writes.push(`${request.method()} ${path}`);
  });
  page.on("response", (response) => {
    if (statuses.includes(response.status()))
      refused.push(`${response.request().method()} ${response.url()} at ${page.url()}`);
  });
  return { writes, refused };
}

/** Presses every button of the page outside forms with input, one after the other, and the buttons of what opens. */
export async function pressAll(page: Page): Promise<void> {
  const buttons = page.locator("main").getByRole("button");
  const address = page.url();
  for (let index = 0; index < (await buttons.count()); index++) {
    const button = buttons.nth(index);
    if (!(await button.isVisible()) || !(await button.isEnabled())) continue;
    if ((await rowOf(button)) > MAX_ROWS) continue;
    await press(button);
    await pressInside(page, button);
    await page.keyboard.press("Escape");
    if (new URL(page.url()).pathname !== new URL(address).pathname) {
      await page.goto(address);
      await isQuiet(page);
    }
  }
}

/** The rows of a list have the same buttons, and a list that loads more on the way has no end. */
const MAX_ROWS = 20;

/** Its row in a list, from 1; 0: it is in none. */
const rowOf = (button: Locator) =>
  button.evaluate((element) => {
    const row = element.closest("tr, [role=row]");
    return row === null ? 0 : [...(row.parentElement?.children ?? [])].indexOf(row) + 1;
  });

/** An open dialog or menu may cover it. */
const press = (button: Locator) => button.click({ timeout: 1000 }).catch(() => undefined);

/** These end the walk. */
const LEAVES = /sign out|session/i;

/** Every item of the menu or dialog that a button opens; the button opens it again for each. */
async function pressInside(page: Page, opener: Locator): Promise<void> {
  const inside = page.locator('[role="menu"] [role^="menuitem"], [role="dialog"] button');
  const address = page.url();
  for (let index = 0; index < (await inside.count()); index++) {
    const item = inside.nth(index);
    if (!(await item.isVisible()) || LEAVES.test((await item.textContent()) ?? "")) continue;
    await press(item);
    await page.keyboard.press("Escape");
    if (page.url() !== address) return;
    await press(opener);
  }
}
