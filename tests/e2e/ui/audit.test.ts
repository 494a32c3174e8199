// The audit log in a browser: filters in the address, older entries page by page, and one entry in full.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, emailOf, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

const MANY = 130;

beforeAll(async () => {
  const { gateway } = scene;
  for (let index = 0; index < MANY; index++)
    await gateway.ok("POST", "/api/v1/services", { name: `service-${index}` });
  await gateway.ok("PATCH", "/api/v1/services/service-7", { description: "seven", path: "/deep" });
  await gateway.ok("DELETE", "/api/v1/services/service-8");
  await gateway.api("POST", "/api/v1/services", { name: "wrong", protocol: "gopher" });
  await scene.createPeople();
});

test("entries are found by person, action, object and result, and opened", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/audit-log" });
  const rows = page.locator(".list-row");
  await page
    .getByRole("button", { name: /created user/ })
    .first()
    .waitFor();
  expect(await checkAccessible(page)).toEqual([]);

  await page.getByLabel("Search the audit log").fill("service-7");
  await page.locator('input[aria-label="Action"]').click();
  await page.getByRole("option", { name: "changed" }).click();
  await eventually(async () => (await rows.count()) === 1);
  expect(page.url()).toContain("q=service-7");
  expect(page.url()).toContain("action=update");
  await page.getByRole("button", { name: /changed service service-7/ }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByText("Changes").waitFor();
  await drawer.locator(".is-added", { hasText: "/deep" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "audit-entry");
  await drawer.getByRole("link", { name: "History of this object" }).click();
  await eventually(async () => (await rows.count()) === 2);
  expect(page.url()).toContain("object=");
  expect(complaints).toEqual([]);
  await close();
});

test("a refused action shows the reason, and a shared URL shows the same", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/audit-log?result=refused",
  });
  await page.getByRole("button", { name: /create service/ }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByText("Why", { exact: true }).waitFor();
  await drawer.getByText(/protocol: /).waitFor();
  await page.goto(
    `${scene.gateway.admin}/ui/audit-log?actor=${encodeURIComponent(emailOf("admin"))}&action=login`,
  );
  await page.getByRole("button", { name: "signed in" }).first().waitFor();
  await page.goto(`${scene.gateway.admin}/ui/audit-log?q=no-such-thing`);
  await page.getByRole("button", { name: "Show all" }).click();
  await page
    .getByRole("button", { name: /created user/ })
    .first()
    .waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("older entries load page by page to the end", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/audit-log?kind=service&result=ok",
  });
  await isQuiet(page);
  await page.getByText("100 entries").waitFor();
  await page.getByRole("button", { name: "Show older entries" }).click();
  await page.getByText(`${MANY + 2} entries: there are no older ones`).waitFor();
  expect(complaints).toEqual([]);
  await close();
});
