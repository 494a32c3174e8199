// The reference of the management API in a browser: nothing comes from elsewhere, and nothing fails.
import { expect } from "bun:test";
import { leaseBrowser, visit } from "../../support/browser.ts";
import { useUi } from "../../support/ui-scene.ts";

const { scene, test } = useUi({ workers: 1 });

test.each([
  { why: "a desktop in daylight", dark: false, width: 1280 },
  { why: "a telephone at night", dark: true, width: 380 },
])("it opens without errors or requests to other origins: $why", async ({ dark, width }) => {
  const { browser, release } = await leaseBrowser();
  const { admin } = scene.gateway;
  const shows = "h1:has-text('Sluice management API')";
  const shown = await visit(browser, { url: `${admin}/docs`, shows, dark, width });
  await release();
  expect(shown.complaints).toEqual([]);
  const origins = shown.requested
    .filter((url) => !/^(?:data|blob):/.test(url))
    .map((url) => new URL(url).origin);
  expect([...new Set(origins)]).toEqual([admin]);
  expect(shown.title).toBe("Sluice management API");
  // The first sections render at once, the others when the user scrolls to them.
  expect(shown.text).toContain("Services");
});

/** Seconds of processor time of the page's main thread until it shows its first section. */
const MAX_OPENING_S = 2;

test("it opens within two seconds of processor time", async () => {
  const { page, close } = await scene.open({ path: "/livez" });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(`${scene.gateway.admin}/docs`);
  await page.locator("h2:has-text('Services')").waitFor();
  const { metrics } = await session.send("Performance.getMetrics");
  const seconds = metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
  console.log(`/docs: ${seconds.toFixed(2)} s of processor time`);
  expect(seconds).toBeLessThan(MAX_OPENING_S);
  await close();
});
