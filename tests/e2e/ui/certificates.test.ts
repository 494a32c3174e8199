// Certificates, ACME accounts and DNS providers in a browser: upload with errors at their fields, issuance, renewal, revocation.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { startDnsHook } from "../../support/acme-scene.ts";
import { Authority } from "../../support/authority.ts";
import { needs } from "../../support/needs.ts";
import { Pebble } from "../../support/pebble.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  startUi,
  type UiPage,
  type UiScene,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium", "pebble");

let scene: UiScene;
let pebble: Pebble;
let hook: ReturnType<typeof startDnsHook>;
/** The administrator's page, shared by the tests. */
let admin: UiPage;

beforeAll(async () => {
  const [httpPort, tlsPort] = [quietPort(), quietPort()];
  pebble = new Pebble({ httpPort, tlsPort });
  await pebble.start();
  hook = startDnsHook(pebble);
  scene = await startUi({
    args: [
      ...["--http", `127.0.0.1:${httpPort}`, "--https", `127.0.0.1:${tlsPort}`],
      ...["--dns-servers", pebble.nameServer],
    ],
  });
  await scene.gateway.ok("POST", "/api/v1/acme/accounts", {
    name: "pebble",
    directory_url: pebble.directoryUrl,
    terms_agreed: true,
    ca_certificates: pebble.trusted,
  });
  await scene.createPeople();
  // The gateway rejects the deliberate mistakes of these tests.
  admin = await scene.openAs("admin", { path: "/ui/certificates", expects: [400, 409] });
});
afterAll(async () => {
  await scene?.stop();
  hook?.stop();
  await pebble?.stop();
});

const field = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
/** A field for several texts. */
const names = (page: Page, name: string) => page.getByRole("combobox", { name, exact: true });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** Reads from the management API with the session of the page. */
// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
async function read(page: Page, path: string): Promise<any> {
  return await (await page.request.get(`${scene.gateway.admin}/api/v1/${path}`)).json();
}

async function open(path: string): Promise<Page> {
  const { page } = admin;
  await page.goto(`${scene.gateway.admin}/ui/${path}`);
  await isQuiet(page);
  return page;
}

test("a pasted certificate is parsed at once, and errors appear at their fields", async () => {
  const authority = await Authority.create("Test CA");
  const leaf = await authority.sign({ names: ["pasted.example.com"], until: 20 });
  const other = await authority.sign({ names: ["other.example.com"] });
  const page = await open("certificates");
  await page.getByRole("link", { name: "Create the first certificate" }).click();
  await page.getByRole("radio", { name: "Upload" }).check();
  await field(page, "Certificate").fill(leaf.key);
  await page.getByText("This is a private key: paste it into the field below").waitFor();
  await field(page, "Certificate").fill(leaf.cert);
  await field(page, "Private key").fill(other.key);
  await page.getByText(/does not (fit|belong)|not the key/).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await field(page, "Private key").fill(leaf.key);
  await page.getByText("pasted.example.com").waitFor();
  await page.getByText("issued by CN=Test CA").waitFor();
  await field(page, "Name").fill("pasted");
  // A draft is stored in the tab after a moment, without the key.
  await eventually(async () => (await storedDrafts(page)).includes("pasted"));
  expect(await storedDrafts(page)).not.toContain("PRIVATE KEY");
  await button(page, "Create").click();
  await page.getByText("Certificate pasted created").waitFor();
  await page.getByText("19 days left").waitFor();
  expect(await read(page, "certificates/pasted")).toMatchObject({
    source: "upload",
    domains: ["pasted.example.com"],
    status: "valid",
  });
  expect(await checkAccessible(page)).toEqual([]);
  expect(admin.complaints).toEqual([]);
});

const storedDrafts = (page: Page): Promise<string> =>
  page.evaluate(() => JSON.stringify({ ...sessionStorage }));

test("a requested one shows its progress live, and is renewed and revoked", async () => {
  const page = await open("certificates/new");
  await names(page, "Domains").fill("ordered.example.com");
  await names(page, "Domains").press("Enter");
  await page.getByText("ordered.example.com resolves to this gateway: 127.0.0.1").waitFor();
  expect(await field(page, "Name").inputValue()).toBe("ordered.example.com");
  await field(page, "Name").fill("ordered");
  await button(page, "Create").click();
  const state = page.getByRole("region", { name: "State" });
  await state.getByText("valid", { exact: true }).waitFor();
  await state.getByText("5 years left").waitFor();
  await screenshots(page, "certificate");
  const { fingerprint: first } = await read(page, "certificates/ordered");
  await button(page, "Renew now").click();
  const isAnother = async (fingerprint: string) => {
    const found = await read(page, "certificates/ordered");
    return found.status === "valid" && found.fingerprint !== fingerprint;
  };
  await eventually(() => isAnother(first));
  const { fingerprint: second } = await read(page, "certificates/ordered");
  await state.getByText(second).waitFor();
  await button(page, "Revoke").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("This cannot be undone").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Certificate ordered revoked").waitFor();
  await eventually(() => isAnother(second));
  expect(admin.complaints).toEqual([]);
});

test("a failed issuance is shown with advice", async () => {
  await pebble.failName("lost.example.com");
  const page = await open("certificates/new");
  await names(page, "Domains").fill("lost.example.com");
  await names(page, "Domains").press("Enter");
  await button(page, "Create").click();
  await page.getByText("Issuance failed").waitFor();
  await page.getByText("Create an A or AAAA record that points to this gateway").waitFor();
  await page.getByText("Next attempt", { exact: true }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await pebble.healName("lost.example.com");
  await button(page, "Retry now").click();
  const state = page.getByRole("region", { name: "State" });
  await state.getByText("valid", { exact: true }).waitFor();
  expect(admin.complaints).toEqual([]);
});

test("a DNS provider is configured from its schema, tested, and validates a wildcard", async () => {
  const page = await open("dns-providers/new");
  await page.getByRole("combobox", { name: "Provider" }).click();
  await page.getByRole("option", { name: "Webhook" }).click();
  await field(page, "Address").fill("no address");
  await page.getByLabel("Token").fill("very secret token");
  await names(page, "Zones").fill("wild.example.com");
  await names(page, "Zones").press("Enter");
  await button(page, "Create").click();
  await page.getByText(/must be an http/).waitFor();
  await eventually(async () => (await storedDrafts(page)).includes("wild.example.com"));
  expect(await storedDrafts(page)).not.toContain("very secret token");
  await field(page, "Address").fill(hook.url);
  await button(page, "Create").click();
  await page.getByText("DNS provider webhook created").waitFor();
  await button(page, "Test the zone").click();
  await page.getByText("The settings are complete").waitFor();
  await page
    .getByText(/was written|written/)
    .first()
    .waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  expect((await read(page, "dns-providers/webhook")).config.token).toBeUndefined();

  await page.goto(`${scene.gateway.admin}/ui/certificates/new`);
  await names(page, "Domains").fill("*.wild.example.com");
  await names(page, "Domains").press("Enter");
  await page.getByText("select it below").waitFor();
  await page.getByRole("radio", { name: "DNS (dns-01)" }).check();
  await button(page, "Create").click();
  const state = page.getByRole("region", { name: "State" });
  await state.getByText("valid", { exact: true }).waitFor();
  expect(admin.complaints).toEqual([]);
});

test("an account rotates its key; dependents of a certificate are named before its deletion", async () => {
  const page = await open("acme-accounts");
  await page.getByRole("link", { name: "pebble", exact: true }).click();
  await button(page, "Rotate key").click();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
  await page.getByText("ACME account pebble has a new key").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.request.post(`${scene.gateway.admin}/api/v1/applications`, {
    headers: { origin: scene.gateway.admin },
    data: {
      name: "site",
      domains: ["pasted.example.com"],
      upstream: "http://127.0.0.1:1",
      https: { mode: "certificate", certificate_id: "pasted" },
    },
  });
  await page.goto(`${scene.gateway.admin}/ui/certificates?q=pasted`);
  await page.getByRole("link", { name: "pasted", exact: true }).click();
  await button(page, "Delete").click();
  await page
    .getByRole("dialog")
    .getByText(/application "site"/)
    .waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await open("certificates");
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "certificates");
  expect(admin.complaints).toEqual([]);
});

test("viewers read all of it and see no button that the API rejects", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/certificates" });
  expect(await page.getByRole("link", { name: "New certificate" }).count()).toBe(0);
  await page.getByRole("link", { name: "ordered", exact: true }).click();
  await isQuiet(page);
  for (const name of ["Renew now", "Revoke", "Delete", "Save", "From a file"])
    expect([name, await page.getByRole("button", { name }).count()]).toEqual([name, 0]);
  for (const path of ["acme-accounts/pebble", "dns-providers/webhook"]) {
    await page.goto(`${scene.gateway.admin}/ui/${path}`);
    await isQuiet(page);
    for (const name of ["Rotate key", "Test the zone", "Delete", "Save"])
      expect([name, await page.getByRole("button", { name }).count()]).toEqual([name, 0]);
    expect([path, await checkAccessible(page)]).toEqual([path, []]);
  }
  expect(complaints).toEqual([]);
  await close();
});
