// Screenshots of every page of the web UI in light and dark, at 1440 and 380 pixels, into dist/screenshots; with --guide those of
// docs/web-ui.md.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { pagePath } from "../../src/ui/page-path.ts";
import { fillGateway } from "../support/filled-gateway.ts";
import { shootGuide } from "./guide.ts";
import { allViews, lists, type View } from "../support/ui-views.ts";
import { hasScheme, isQuiet, SCREENSHOTS, startUi, type UiScene } from "../support/ui-scene.ts";

const WIDTHS = [1440, 380];
const SCHEMES = ["light", "dark"] as const;

async function shoot(page: Page, origin: string, { name, path, prepare }: View): Promise<void> {
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

async function shootAll(page: Page, scene: UiScene, shots: readonly View[]): Promise<void> {
  for (const shot of shots) {
    // The leave guard asks before unsaved input is lost.
    await page.evaluate("sessionStorage.clear()");
    await shoot(page, scene.gateway.admin, shot);
    console.log(shot.name);
  }
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
    await shootAll(page, scene, await allViews(page));
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
