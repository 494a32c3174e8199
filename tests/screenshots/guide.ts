// The images of docs/web-ui.md: what a person sees at each step, in light colors, into docs/images/ui.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Locator, Page } from "playwright-core";
import { isQuiet, startUi } from "../support/ui-scene.ts";

const IMAGES = resolve(import.meta.dir, "../../docs/images/ui");
/** Of an image; the repository keeps each version. */
const MAX_BYTES = 80_000;

/** WebP takes a third of PNG here, and Playwright has no option for it. */
async function shoot(page: Page, name: string, part?: Locator): Promise<void> {
  await isQuiet(page);
  for (const close of await page.locator(".mantine-Notification-closeButton").all())
    await close.click();
  // Below what sticks to the upper edge.
  await part?.evaluate((element) => {
    element.scrollIntoView();
    scrollBy(0, -72);
  });
  const session = await page.context().newCDPSession(page);
  const options = { format: "webp", quality: 80 } as const;
  const { data } = await session.send("Page.captureScreenshot", options);
  const bytes = Buffer.from(data, "base64");
  if (bytes.length > MAX_BYTES) throw new Error(`${name}.webp has ${bytes.length} bytes`);
  writeFileSync(join(IMAGES, `${name}.webp`), bytes);
  console.log(`${name}.webp: ${bytes.length} bytes`);
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const field = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });

export async function shootGuide(): Promise<void> {
  rmSync(IMAGES, { recursive: true, force: true });
  mkdirSync(IMAGES, { recursive: true });
  const scene = await startUi({ args: ["--https", "127.0.0.1:0"] });
  try {
    const { port } = scene.serve(() => new Response("photos"));
    const size = { width: 1000, height: 640 };
    const first = await scene.open(size);
    await button(first.page, "Create administrator").waitFor();
    await shoot(first.page, "first-user");
    await first.close();
    await scene.createPeople();
    const { page } = await scene.openAs("admin", size);
    const go = async (path: string) => {
      await page.goto(`${scene.gateway.admin}/ui/${path}`);
      await isQuiet(page);
    };

    await go("applications/new");
    await field(page, "Domain").fill("photos.home.arpa");
    await button(page, "Add a domain").click();
    await field(page, "Domain 2").fill("pictures.home.arpa");
    await shoot(page, "first-site");
    await button(page, "Next").click();
    await field(page, "Upstream URL").fill(`http://127.0.0.1:${port}`);
    await page.getByText("responds with status 200").waitFor();
    await shoot(page, "upstream");
    for (let each = 0; each < 2; each++) await button(page, "Next").click();
    await button(page, "Create").click();
    await page.getByRole("link", { name: "All settings" }).waitFor();
    await shoot(page, "certificate");

    await page.getByRole("link", { name: "All settings" }).click();
    await isQuiet(page);
    const cards = page.getByRole("region", { name: "Policies" });
    await cards.getByRole("switch", { name: /^Password/ }).press("Space");
    await field(page, "New user").fill("anna");
    await page.locator('input[type="password"]').fill("open sesame");
    await page.setViewportSize({ width: 1000, height: 860 });
    await shoot(page, "password", cards);
    await page.setViewportSize(size);
    await button(page, "Save").click();
    await page.getByText(/^Application .* saved$/).waitFor();

    await go("stream-routes/new");
    await page.getByRole("combobox", { name: "Program" }).click();
    await page.getByRole("option", { name: "Minecraft" }).click();
    await field(page, "Server").fill("10.0.0.5");
    await shoot(page, "stream");

    await go("requests");
    await page.getByText("Live", { exact: true }).waitFor();
    await fetch(`http://127.0.0.1:${scene.gateway.httpPort}/album/7`, {
      headers: { host: "photos.home.arpa" },
    });
    await page.locator("tr.request-row").first().click();
    await page.getByRole("dialog").getByText("Outcome").first().waitFor();
    await shoot(page, "failed-request");

    const { revision } = await scene.gateway
      .api("GET", "/api/v1/admin/status", undefined, await scene.cookieOf("admin"))
      .then((response) => response.json() as Promise<{ revision: number }>);
    await go(`revisions/${revision}`);
    await shoot(page, "undo");
    await go("users");
    await shoot(page, "users");
    await go("export-import?tab=backup");
    await shoot(page, "backup");
  } finally {
    await scene.stop();
  }
}
