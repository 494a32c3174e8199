// The reference of the management API in a browser: nothing comes from elsewhere, and nothing fails.
import { expect } from "bun:test";
import { type BrowserLease, leaseBrowser, visit } from "../../support/browser.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { executable } from "../../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium");

let gateway: Gateway;
let lease: BrowserLease;

beforeAll(async () => {
  [gateway, lease] = await Promise.all([startGateway({ binary: executable }), leaseBrowser()]);
});
afterAll(async () => {
  await lease?.release();
  await gateway?.stop();
});

test.each([
  { why: "a desktop in daylight", dark: false, width: 1280 },
  { why: "a telephone at night", dark: true, width: 380 },
])("it opens without errors or requests to other origins: $why", async ({ dark, width }) => {
  const shown = await visit(lease.browser, {
    url: `${gateway.admin}/docs`,
    shows: "h1:has-text('Sluice management API')",
    dark,
    width,
  });
  expect(shown.complaints).toEqual([]);
  const origins = shown.requested
    .filter((url) => !/^(?:data|blob):/.test(url))
    .map((url) => new URL(url).origin);
  expect([...new Set(origins)]).toEqual([gateway.admin]);
  expect(shown.title).toBe("Sluice management API");
  // The first sections render at once, the others when the user scrolls to them.
  expect(shown.text).toContain("Services");
});
