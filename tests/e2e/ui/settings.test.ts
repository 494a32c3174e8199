// Settings in a browser: every group, errors at their fields, two users at once, and no accidental lockout.
import { expect } from "bun:test";
import { randomInt } from "node:crypto";
import type { Page } from "playwright-core";
import { runCommand } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

const path = "/ui/gateway-settings";

beforeAll(async () => {
  await scene.createPeople();
});

/** The API's response to a request from the page with its session. */
const stored = (page: Page): Promise<Record<string, unknown>> =>
  page.evaluate(async () => await (await fetch("/api/v1/settings")).json());
const save = (page: Page) => page.getByRole("button", { name: "Save", exact: true }).click();
const isSaved = (page: Page) => page.getByText("Settings saved").first().waitFor();

test("each group is editable, and errors appear at their fields", async () => {
  // Another value at each try: what is stored already cannot be saved again.
  const revisions = randomInt(100, 1000);
  const { page, complaints, close } = await scene.openAs("admin", { path, expects: [400] });
  await page.getByLabel("Public address").fill("gateway");
  await page.getByText("Must be http:// or https:// and a host, without a path").waitFor();
  await page.getByLabel("Public address").fill("https://gateway.example.com");
  const proxies = page.getByRole("combobox", { name: "Trusted proxies" });
  await proxies.fill("everybody");
  await proxies.press("Enter");
  await page.getByText(/everybody is not an address or network/).waitFor();
  await proxies.press("Backspace");
  await proxies.fill("10.300.0.0/8");
  await proxies.press("Enter");
  await page.getByRole("combobox", { name: "Response" }).click();
  await page.getByRole("option", { name: "Redirect" }).click();
  await page.getByLabel("Redirect to").fill("https://www.example.com/");
  await page.getByRole("switch", { name: "Debug headers" }).check();
  await page.getByRole("textbox", { name: "Revisions" }).fill(String(revisions));
  await page.getByRole("button", { name: /^Limits/ }).click();
  await page.getByRole("textbox", { name: "Requests in flight per worker" }).fill("2000");
  await save(page);
  // Only the gateway can validate this.
  await page.getByText("must be an IP address or a network such as", { exact: false }).waitFor();
  await proxies.press("Backspace");
  await proxies.fill("10.0.0.0/8");
  await proxies.press("Enter");
  await page.getByRole("button", { name: /^GeoIP/ }).click();
  await page.getByLabel("Country database").fill("/nowhere.mmdb");
  await save(page);
  await eventually(
    async () => (await page.getByLabel("Country database").getAttribute("aria-invalid")) === "true",
  );
  await page.getByLabel("Country database").fill("");
  expect(await checkAccessible(page)).toEqual([]);
  await save(page);
  // One notification, which closes by itself.
  await Promise.all([isSaved(page), page.getByText(/Live on \d+ workers, revision \d+/).waitFor()]);
  expect(await stored(page)).toMatchObject({
    public_url: "https://gateway.example.com",
    trusted_proxies: ["10.0.0.0/8"],
    default_site: { action: "redirect", to: "https://www.example.com/" },
    debug_headers: true,
    retention: { revisions, requests: 10_000 },
    limits: { max_in_flight_requests: 2000 },
    geoip: { country_db: null },
  });
  await screenshots(page, "settings");
  expect(complaints).toEqual([]);
  await close();
});

test("unsaved input survives a reload, and can be discarded", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path });
  await page.getByRole("textbox", { name: "Audit log days" }).fill("30");
  await eventually(() => page.evaluate(() => sessionStorage.getItem("sluice.draft:settings")));
  page.on("dialog", (dialog) => void dialog.accept());
  await page.reload();
  await isQuiet(page);
  await page.getByText("Draft restored").waitFor();
  expect(await page.getByRole("textbox", { name: "Audit log days" }).inputValue()).toBe("30");
  await page.getByRole("button", { name: "Discard", exact: true }).click();
  await eventually(
    async () => (await page.getByRole("textbox", { name: "Audit log days" }).inputValue()) === "90",
  );
  expect(complaints).toEqual([]);
  await close();
});

test("two users who change the settings at once choose which values to keep", async () => {
  const [ann, bob] = await Promise.all([
    scene.openAs("admin", { path, expects: [412] }),
    scene.openAs("admin", { path, expects: [412] }),
  ]);
  await bob.page.getByRole("textbox", { name: "Requests", exact: true }).fill("5000");
  await ann.page.getByRole("textbox", { name: "Requests", exact: true }).fill("7000");
  await ann.page.getByRole("textbox", { name: "Audit log days" }).fill("60");
  await save(ann.page);
  await isSaved(ann.page);
  await save(bob.page);
  const prompt = bob.page.getByRole("dialog", { name: "Concurrent change" });
  const requests = prompt.getByRole("radiogroup", { name: "retention.requests" });
  await requests.waitFor();
  expect(await checkAccessible(bob.page)).toEqual([]);
  await requests.getByRole("radio", { name: /Keep mine/ }).check();
  await prompt.getByRole("button", { name: "Save again" }).click();
  await isSaved(bob.page);
  expect(await stored(bob.page)).toMatchObject({ retention: { requests: 5000, audit_days: 60 } });
  // A form without input shows the newly saved values.
  await eventually(
    async () =>
      (await ann.page.getByRole("textbox", { name: "Requests", exact: true }).inputValue()) ===
      "5 000",
  );
  expect([...ann.complaints, ...bob.complaints]).toEqual([]);
  await Promise.all([ann.close(), bob.close()]);
});

test("a change that locks out its sender requires confirmation", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path, expects: [403, 409] });
  await page.getByText("The gateway listens on loopback only").waitFor();
  const field = page.getByRole("combobox", { name: "Allowed networks" });
  const add = async (network: string) => {
    await field.fill(network);
    await field.press("Enter");
  };
  // With the admin's own network in the list, no confirmation is required.
  await add("127.0.0.0/8");
  await save(page);
  await isSaved(page);
  expect((await stored(page))["admin_allowed_cidrs"]).toEqual(["127.0.0.0/8"]);
  await field.press("Backspace");
  await add("192.0.2.0/24");
  await save(page);
  const prompt = page.getByRole("dialog", { name: "Lock yourself out?" });
  await prompt.getByText(/Your address 127\.0\.0\.1/).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await prompt.getByRole("button", { name: "Cancel" }).click();
  await page.getByText(/would lock out 127\.0\.0\.1/).waitFor();
  expect((await stored(page))["admin_allowed_cidrs"]).toEqual(["127.0.0.0/8"]);
  await save(page);
  await prompt.getByRole("button", { name: "Save anyway" }).click();
  await eventually(async () => (await scene.gateway.api("GET", "/api/v1/settings")).status === 403);
  const { dataDir } = scene.gateway;
  const reset = await runCommand(["reset-admin-networks", "--data-dir", dataDir]);
  expect(reset.code).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});

test("every page shows whether any address or only this machine can reach it", async () => {
  const words = ["--admin", "0.0.0.0:0"];
  const restart = async (...more: string[]) => {
    await scene.gateway.restart([...words, ...more]);
    scene.gateway.admin = scene.gateway.admin.replace("0.0.0.0", "127.0.0.1");
  };
  await restart("--admin-allow", "any");
  const open = await scene.openAs("admin", { path: "/ui/services" });
  await open.page.getByText("Management access is open to every network").waitFor();
  expect(await checkAccessible(open.page)).toEqual([]);
  await open.page.getByRole("link", { name: "Set the allowed networks" }).click();
  await open.page.getByText("In effect: 0.0.0.0/0, ::/0").waitFor();
  await open.close();
  await restart();
  const held = await scene.openAs("viewer", { path: "/ui/services" });
  await held.page.getByText("Management access is limited to this machine").waitFor();
  await held.page
    .getByText(/start with --admin-allow NETWORKS/)
    .first()
    .waitFor();
  expect(await checkAccessible(held.page)).toEqual([]);
  expect([...open.complaints, ...held.complaints]).toEqual([]);
  await held.close();
  await restart("--admin-allow", "private");
  const fine = await scene.openAs("viewer", { path: "/ui/services" });
  await isQuiet(fine.page);
  expect(await fine.page.getByText("Management access").count()).toBe(0);
  await fine.close();
});

test("viewers and editors read the settings and see no buttons", async () => {
  for (const role of ["viewer", "editor"] as const) {
    const { page, complaints, close } = await scene.openAs(role, { path });
    expect(await page.getByLabel("Public address").isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0);
    expect(await checkAccessible(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
  }
});
