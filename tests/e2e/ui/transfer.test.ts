// Export and import in a browser: preview, apply, errors with their lines, and files of other programs.
import { expect } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi();

const directory = mkdtempSync(join(tmpdir(), "sluice-transfer-"));

beforeAll(async () => {
  await scene.gateway.ok("POST", "/api/v1/services", {
    name: "old",
    targets: [{ host: "127.0.0.1", port: 4000 }],
  });
  await scene.createPeople();
});
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
});

const document = `format: 1
services:
  - name: web
targets:
  - { service_id: web, host: 127.0.0.1, port: 3000 }
routes:
  - name: shop
    service_id: web
    hosts: [shop.example]
`;

const paste = async (page: Page, text: string) => {
  await page.getByLabel(/paste it here|Pasted/).fill(text);
  await page.getByRole("button", { name: "Preview changes" }).click();
};

const servicesOf = async (page: Page): Promise<string[]> =>
  (await page.evaluate(
    `fetch("/api/v1/services").then((r) => r.json()).then((all) => all.map(({ name }) => name).sort())`,
  )) as string[];

test("pasted text is previewed, and applied only after confirmation", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
  });
  expect(await checkAccessible(page)).toEqual([]);
  await paste(page, document);
  await page.getByRole("heading", { name: "Changes" }).waitFor();
  await page.getByRole("button", { name: /Added route shop/ }).waitFor();
  await page.getByText("shop.example").last().waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "import-preview");
  expect(await servicesOf(page)).toEqual(["old"]);

  await page.getByLabel("Search the changes").fill("route");
  await eventually(async () => (await page.locator(".change").count()) === 1);
  expect(page.url()).toContain("q=route");
  await page.getByRole("button", { name: "Clear the search" }).click();

  await page.getByRole("button", { name: /^Import: 3 added/ }).click();
  await page.getByRole("dialog").getByText("Total: 3 added").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText(/3 added: live on 2 workers as revision \d+/).waitFor();
  expect(await servicesOf(page)).toEqual(["old", "web"]);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});

test("replacing shows what it removes, and equal objects are no change", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
  });
  await paste(page, document);
  await page.getByText(/No changes: the gateway.s configuration equals/).waitFor();
  await page.getByLabel("Replace", { exact: true }).check();
  await page.getByRole("heading", { name: "Changes" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Preview changes" }).click();
  await page.getByRole("button", { name: /Removed service old/ }).waitFor();
  await page.getByRole("button", { name: /Removed target 127.0.0.1:4000/ }).waitFor();
  expect(await servicesOf(page)).toEqual(["old", "web"]);
  expect(complaints).toEqual([]);
  await close();
});

const broken = [
  {
    why: "a value that is wrong",
    text: document.replace("port: 3000", "port: 70000"),
    field: "targets[0].port",
    line: "5",
  },
  {
    why: "a service that does not exist",
    text: document.replace("service_id: web\n", "service_id: nowhere\n"),
    field: "routes[0].service_id",
    line: "8",
  },
  {
    why: "text that is no YAML",
    text: document.replace("hosts: [shop.example]", "hosts: [shop.example"),
    field: null,
    line: null,
  },
];
test.each(broken)("$why is named with its line and changes nothing", async (mistake) => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
    expects: [400, 409],
  });
  const before = await servicesOf(page);
  await paste(page, mistake.text);
  const alert = page.getByRole("alert").filter({ hasText: "Nothing has changed" });
  await alert.waitFor();
  if (mistake.field !== null) await alert.getByText(mistake.field, { exact: true }).waitFor();
  if (mistake.line !== null) {
    expect(await alert.locator(".is-wrong .excerpt-number").textContent()).toBe(mistake.line);
  }
  expect(await checkAccessible(page)).toEqual([]);
  expect(await servicesOf(page)).toEqual(before);
  expect(complaints).toEqual([]);
  await close();
});

test("a file of Kong is recognized and comes with an import report", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
  });
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Choose files" }).click(),
  ]);
  await chooser.setFiles(resolve(import.meta.dir, "../../fixtures/import/kong.yaml"));
  await page.getByText("Detected: Kong (declarative file)").waitFor();
  await page.getByRole("button", { name: "Preview changes" }).click();
  await page.getByRole("heading", { name: /^Not imported \(\d+\)/ }).waitFor();
  await page.getByRole("button", { name: /Added service orders/ }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "import-kong");
  await page.getByRole("button", { name: /^Import: / }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
  await page
    .getByText(/live on 2 workers as revision \d+/)
    .first()
    .waitFor();
  expect(await servicesOf(page)).toContain("orders");

  await page.getByRole("link", { name: "Revert" }).click();
  await page.getByRole("button", { name: /Removed service orders/ }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

/** Drags files from outside over a point of the window and lets go, as the browser's own event loop does it. */
async function dropFiles(page: Page, files: readonly string[], { x, y }: { x: number; y: number }) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [...files], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver"] as const)
    await session.send("Input.dispatchDragEvent", { type, x, y, data });
  await page.locator(".drop-area.is-over").waitFor();
  await session.send("Input.dispatchDragEvent", { type: "drop", x, y, data });
  await session.detach();
}

test("a file may be dropped anywhere on the page, also over pasted text", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
  });
  const kong = resolve(import.meta.dir, "../../fixtures/import/kong.yaml");
  const caddy = resolve(import.meta.dir, "../../fixtures/import/caddy.json");
  await page.getByLabel(/paste it here/).fill("format: 1");
  const beside = { x: 1200, y: 800 };
  await dropFiles(page, [kong], beside);
  await page.getByText("Detected: Kong (declarative file)").waitFor();
  await page.getByText("kong.yaml", { exact: true }).waitFor();
  await dropFiles(page, [caddy], { x: 640, y: 320 });
  await page.getByText("Detected: Caddy (JSON)").waitFor();
  await dropFiles(page, [caddy, kong], beside);
  await page.getByText("Detected: Whole set-up (the gateway detects the program)").waitFor();
  await page.getByText("2 files", { exact: true }).waitFor();
  expect(page.url()).toContain("/ui/export-import?tab=import");
  await page.getByRole("button", { name: "Choose another file" }).click();
  await dropFiles(page, [import.meta.dir], beside);
  await page.getByText("could not be read. Is it a file?").waitFor();
  expect(complaints).toEqual([]);
  await close();
});

/** A copy of the tables of Nginx Proxy Manager. */
function npmDatabase(): string {
  const path = join(directory, "database.sqlite");
  const database = new Database(path, { create: true });
  database.run(readFileSync(resolve(import.meta.dir, "../../fixtures/import/npm.sql"), "utf8"));
  database.close();
  return path;
}

test.each([
  {
    program: "Caddy (JSON)",
    path: () => resolve(import.meta.dir, "../../fixtures/import/caddy.json"),
    adds: /Added route app\.test/,
    host: "app.test",
  },
  {
    program: "Nginx Proxy Manager (database)",
    path: npmDatabase,
    adds: /Added route photos\.test/,
    host: "photos.test",
  },
])("a file of $program is recognized, previewed and imported", async ({ program, path, ...is }) => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
  });
  await dropFiles(page, [path()], { x: 640, y: 400 });
  await page.getByText(`Detected: ${program}`).waitFor();
  await page.getByRole("button", { name: "Preview changes" }).click();
  await page.getByRole("heading", { name: /^Not imported \(\d+\)/ }).waitFor();
  await page.getByRole("button", { name: is.adds }).first().waitFor();
  await page.getByRole("checkbox", { name: /^I agree to the terms/ }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: /^Import: / }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
  await page
    .getByText(/live on 2 workers as revision \d+/)
    .first()
    .waitFor();
  const hosts = (await page.evaluate(
    `fetch("/api/v1/routes").then((r) => r.json()).then((all) => all.flatMap(({ hosts }) => hosts))`,
  )) as string[];
  expect(hosts).toContain(is.host);
  expect(complaints).toEqual([]);
  await close();
});

test("an encrypted export has everything, and imports only with its passphrase", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import",
    expects: [400],
  });
  await isQuiet(page);
  await page.getByLabel("Passphrase", { exact: true }).fill("much too ");
  await page.getByRole("button", { name: "Download encrypted" }).click();
  await page.getByText("At least 12 characters", { exact: true }).waitFor();
  await page.getByLabel("Passphrase", { exact: true }).fill("a long passphrase");
  await page.getByLabel("Repeat passphrase").fill("a long passphrase");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download encrypted" }).click(),
  ]);
  const path = join(directory, download.suggestedFilename());
  await download.saveAs(path);
  expect(await Bun.file(path).json()).toMatchObject({ format: 1, encrypted: expect.anything() });

  await page.getByRole("tab", { name: "Import" }).click();
  await page.locator('input[type="file"]').first().setInputFiles(path);
  const given = page.getByRole("tabpanel", { name: "Import" }).getByLabel("Passphrase");
  await given.fill("another passphrase");
  await page.getByRole("button", { name: "Preview changes" }).click();
  await page.getByRole("alert").filter({ hasText: "passphrase" }).waitFor();
  await given.fill("a long passphrase");
  await page.getByRole("button", { name: "Preview changes" }).click();
  await page.getByText(/No changes: the gateway.s configuration equals/).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("the files of a set-up are imported together, with a line for each host", async () => {
  const folder = join(directory, "set-up");
  const files = {
    "traefik.yml": "entryPoints: { web: { address: ':80', http: { middlewares: ['auth@file'] } } }",
    "dynamic/app.yml":
      "http: { routers: { app: { rule: 'Host(`set-up.test`)', entryPoints: [web], service: app } }, services: { app: { loadBalancer: { servers: [{ url: 'http://127.0.0.1:9' }] } } } }",
  };
  for (const [name, content] of Object.entries(files)) await Bun.write(join(folder, name), content);
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/export-import?tab=import",
  });
  await page.locator('input[type="file"]').nth(1).setInputFiles(folder);
  await page.getByText("2 files", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Preview changes" }).click();
  const line = page.locator(".report-line").first();
  await line.waitFor();
  expect(await line.textContent()).toMatch(/^set-up\.testClosed: middleware "auth"/);
  expect(complaints).toEqual([]);
  await close();
});

test("a viewer can only download the plain configuration file", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/export-import" });
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download YAML" }).click(),
  ]);
  const path = join(directory, "plain.yaml");
  await download.saveAs(path);
  const whole = await Bun.file(path).text();
  expect(whole).toMatch(/^# yaml-language-server: .*\nformat: 1\n/);
  expect(whole).toContain("created_at");
  await page.getByLabel("Minimal").check();
  const [minimal] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download YAML" }).click(),
  ]);
  await minimal.saveAs(path);
  expect(await Bun.file(path).text()).not.toContain("created_at");
  expect(await page.getByRole("tab").allTextContents()).toEqual(["Export", "Backup"]);
  expect(await page.getByLabel("Passphrase").count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});
