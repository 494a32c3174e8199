// Applications in a browser: from an empty data directory through the wizard to a site over HTTPS, drift and maintenance.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { curl } from "../../support/curl.ts";
import { needs } from "../../support/needs.ts";
import { Pebble } from "../../support/pebble.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import {
  checkAccessible,
  emailOf,
  isQuiet,
  screenshots,
  startUi,
  UI_PASSWORD,
  type UiPage,
  type UiScene,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium", "pebble");

let scene: UiScene;
let pebble: Pebble;
let origin: ReturnType<typeof Bun.serve>;
let scratch: string;
/** What the origin received as Host. */
const hosts: string[] = [];
/** The first administrator, who stays signed in. */
let root: UiPage;

beforeAll(async () => {
  const [httpPort, tlsPort] = [quietPort(), quietPort()];
  pebble = new Pebble({ httpPort, tlsPort });
  await pebble.start();
  scene = await startUi({
    args: [
      ...["--http", `127.0.0.1:${httpPort}`, "--https", `127.0.0.1:${tlsPort}`],
      ...["--dns-servers", pebble.nameServer],
    ],
  });
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ headers }) => {
      hosts.push(headers.get("host") ?? "");
      return new Response("it runs");
    },
  });
  scratch = mkdtempSync(join(tmpdir(), "sluice-ui-"));
  root = await scene.open();
});
afterAll(async () => {
  await scene?.stop();
  await pebble?.stop();
  await origin?.stop(true);
  rmSync(scratch, { recursive: true, force: true });
});

const upstream = () => `http://127.0.0.1:${origin.port}`;
const next = (page: Page) => page.getByRole("button", { name: "Next" }).click();
const field = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });

/** Requests as a browser that trusts the CA; without a CA every certificate is accepted. */
async function visit(host: string, ca: string | null = null) {
  const port = scene.gateway.httpsPort;
  const trust = join(scratch, `${crypto.randomUUID()}.pem`);
  if (ca !== null) writeFileSync(trust, ca);
  return await curl(`https://${host}:${port}/`, [
    ...["--resolve", `${host}:${port}:127.0.0.1`],
    ...(ca === null ? [] : ["--no-insecure", "--cacert", trust]),
  ]);
}

/** The wizard up to its preview. */
async function fillIn(page: Page, domain: string) {
  await field(page, "Domain").fill(domain);
  await next(page);
  await field(page, "Upstream URL").fill(upstream());
  await page.getByText(`${upstream()} responds with status 200`).waitFor();
  await next(page);
  await page.getByRole("radio", { name: "Automatic" }).waitFor();
  await next(page);
  await page.getByRole("region", { name: "Preview" }).waitFor();
}

const create = (page: Page) => page.getByRole("button", { name: "Create", exact: true }).click();

test("from an empty data directory to a private name with a certificate of the local CA", async () => {
  const { page, complaints } = root;
  await page.getByLabel("Name").fill("Root");
  await page.getByLabel("E-mail address").fill(emailOf("admin"));
  await page.locator('input[type="password"]').fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Create administrator" }).click();
  await page
    .getByRole("navigation", { name: "Pages" })
    .getByRole("link", { name: "Applications", exact: true })
    .click();
  await page.getByText("No applications yet").waitFor();
  await page.getByRole("link", { name: "Create the first application" }).click();

  await field(page, "Domain").fill("nas home");
  await page.getByText("Must be a host name such as shop.example.com").waitFor();
  await field(page, "Domain").fill("http://nas.home.arpa/login?next=1");
  expect(await field(page, "Domain").inputValue()).toBe("nas.home.arpa");
  await page.getByText("nas.home.arpa resolves to this gateway: 127.0.0.1").waitFor();
  expect(await field(page, "Name").inputValue()).toBe("nas.home.arpa");
  await field(page, "Name").fill("nas");
  await next(page);
  await field(page, "Upstream URL").fill(`http://127.0.0.1:${quietPort()}`);
  await page.getByText("refused the connection").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("combobox", { name: "Host header" }).click();
  await page.getByRole("option", { name: "A name" }).click();
  await next(page);
  await page.getByText("Name in the Host header is required").waitFor();
  await field(page, "Name in the Host header").fill("app.internal");
  await field(page, "Upstream URL").fill(`127.0.0.1:${origin.port}`);
  await field(page, "Upstream URL").blur();
  expect(await field(page, "Upstream URL").inputValue()).toBe(upstream());
  await page.getByText(`${upstream()} responds with status 200`).waitFor();
  await next(page);
  await page.getByText("nas.home.arpa gets a certificate of the local CA").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await next(page);
  await page.getByText("New: certificate nas local").waitFor();
  await screenshots(page, "application-wizard-plan");
  await create(page);

  const { httpsPort } = scene.gateway;
  const link = page.getByRole("link", { name: `Open https://nas.home.arpa:${httpsPort}` });
  await link.waitFor();
  await page.getByText("A certificate of the local CA is in use").waitFor();
  await page.getByText(/Live on \d+ workers?, revision \d+/).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  expect((await visit("nas.home.arpa")).text()).toBe("it runs");
  expect(hosts.at(-1)).toBe("app.internal");
  expect(complaints).toEqual([]);
});

test("with an account created in the browser, a public name gets a valid certificate", async () => {
  const { page, complaints } = root;
  await page.getByRole("link", { name: "ACME accounts", exact: true }).click();
  await page.getByRole("link", { name: "Create the first ACME account" }).click();
  await page.getByRole("combobox", { name: "CA", exact: true }).click();
  await page.getByRole("option", { name: "Custom" }).click();
  await field(page, "Name").fill("pebble");
  await field(page, "Directory").fill(pebble.directoryUrl);
  await page.getByRole("button", { name: /^Advanced/ }).click();
  await field(page, "Trusted CAs of the directory").fill(pebble.trusted);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Required by the CA").waitFor();
  await page.getByRole("switch", { name: /I agree/ }).check();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("ACME account pebble created").waitFor();

  await page
    .getByRole("navigation", { name: "Pages" })
    .getByRole("link", { name: "Applications", exact: true })
    .click();
  await page.getByRole("link", { name: "New application" }).click();
  await fillIn(page, "shop.example.com");
  await page.getByText("New: certificate shop.example.com", { exact: false }).first().waitFor();
  await create(page);
  await page.getByText("The certificate is valid").waitFor();
  await page.getByText(/Redirects HTTP to HTTPS$/).waitFor();
  await screenshots(page, "application-ready");
  const [trusted = ""] = await pebble.roots();
  expect((await visit("shop.example.com", trusted)).text()).toBe("it runs");
  await page.getByRole("link", { name: "All settings" }).click();
  await page.getByRole("heading", { name: "shop.example.com" }).waitFor();
  await isQuiet(page);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test("existing objects are listed, and adopted on request", async () => {
  const { page, complaints } = await openAsAdmin({ expects: [409] });
  const body = { name: "old", targets: [{ host: "127.0.0.1", port: origin.port }] };
  await call(page, "POST", "services", body);
  const route = { name: "old", hosts: ["old.home.arpa"], service_id: "old" };
  const { id } = await call(page, "POST", "routes", route);
  await page.goto(`${scene.gateway.admin}/ui/applications/new`);
  await fillIn(page, "old.home.arpa");
  await page.getByText('route "old" serves old.home.arpa already').waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("checkbox", { name: "Adopt it" }).check();
  await page.getByText("Changed: route old.home.arpa").waitFor();
  await create(page);
  await page.getByRole("heading", { name: "Progress" }).waitFor();
  const made = await call(page, "GET", "applications/old.home.arpa");
  expect(made.routes[0].id).toBe(id);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("drift is shown, accepted or reverted", async () => {
  const { page, complaints } = await openAsAdmin();
  const { id, service } = await call(page, "GET", "applications/nas");
  await call(page, "PATCH", `services/${service.id}`, { connect_timeout: 1234 });
  await page.goto(`${scene.gateway.admin}/ui/applications`);
  await page.getByText("drift", { exact: true }).waitFor();
  await page.getByRole("link", { name: "nas", exact: true }).click();
  const drift = page.getByRole("region", { name: "Drift" });
  await drift.getByRole("cell", { name: "1234" }).waitFor();
  await drift.getByRole("cell", { name: "5000" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Accept changes" }).click();
  await drift.waitFor({ state: "detached" });
  await call(page, "PATCH", `services/${service.id}`, { host_header: "target" });
  await drift.waitFor();
  await page.getByRole("button", { name: "Revert changes" }).click();
  await page.getByRole("button", { name: "Revert", exact: true }).click();
  await drift.waitFor({ state: "detached" });
  const found = await call(page, "GET", `applications/${id}`);
  expect(found.drift).toEqual([]);
  expect(found.service).toMatchObject({ host_header: "app.internal", connect_timeout: 1234 });
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("the list switches maintenance, and viewers see no button that the API rejects", async () => {
  const { page, complaints } = await openAsAdmin({ path: "/ui/applications" });
  await page.getByRole("switch", { name: "Maintenance of nas" }).click({ force: true });
  await page.getByText("nas is under maintenance").waitFor();
  await eventually(async () => (await visit("nas.home.arpa")).status === 503);
  await screenshots(page, "applications");
  const person = { email: emailOf("viewer"), name: "V", role: "viewer", password: UI_PASSWORD };
  await call(page, "POST", "users", person);
  const viewer = await scene.openAs("viewer", { path: "/ui/applications" });
  expect(await viewer.page.getByRole("link", { name: "New application" }).count()).toBe(0);
  expect(await viewer.page.getByRole("switch").count()).toBe(0);
  await viewer.page.getByRole("link", { name: "nas", exact: true }).click();
  await isQuiet(viewer.page);
  expect(await viewer.page.getByRole("button", { name: "Delete" }).count()).toBe(0);
  expect(await viewer.page.getByRole("button", { name: "Save" }).count()).toBe(0);
  expect(await checkAccessible(viewer.page)).toEqual([]);
  expect(viewer.complaints).toEqual([]);
  await viewer.close();
  expect(complaints).toEqual([]);
  await page.context().close();
});

/** A separate page for the administrator that the first test created. */
const openAsAdmin = (options: { path?: string; expects?: readonly number[] } = {}) =>
  scene.openAs("admin", options);

/** Calls the management API with the session of the page. */
// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
async function call(page: Page, method: string, path: string, data?: object): Promise<any> {
  const response = await page.request.fetch(`${scene.gateway.admin}/api/v1/${path}`, {
    method,
    headers: { origin: scene.gateway.admin },
    ...(data === undefined ? {} : { data }),
  });
  if (!response.ok()) throw new Error(`${method} ${path}: ${await response.text()}`);
  return await response.json();
}
