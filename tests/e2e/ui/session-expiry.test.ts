// A session that ends in the middle of a form: the page stays, unsaved input survives, and no other user gets it.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  emailOf,
  isQuiet,
  useUi,
  UI_PASSWORD,
  type UiRole,
} from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let admin: Record<string, string>;

beforeAll(async () => {
  await scene.createPeople();
  const login = { email: emailOf("admin"), password: UI_PASSWORD };
  const { headers } = await scene.gateway.api("POST", "/api/v1/auth/login", login);
  admin = { cookie: headers.getSetCookie()[0]?.split(";")[0] ?? "" };
});

const read = async (path: string) =>
  (await (await scene.gateway.api("GET", `/api/v1${path}`, undefined, admin)).json()) as {
    readonly id: string;
    readonly name: string;
  }[];

async function endSessionsOf(role: UiRole): Promise<void> {
  const sessions = await read(`/auth/sessions?user_id=${emailOf(role)}`);
  expect(sessions.length).toBeGreaterThan(0);
  for (const { id } of sessions)
    await scene.gateway.api("DELETE", `/api/v1/auth/sessions/${id}`, undefined, admin);
}

async function typeService(page: Page, name: string): Promise<void> {
  await page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
  await page.getByLabel("Description").fill("typed with great care");
  await page.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.1");
  await page.getByLabel("Port").fill("3000");
}

const dialogOf = (page: Page) => page.getByRole("dialog", { name: "Your session has ended" });

async function signInAt(page: Page, email: string, password: string): Promise<void> {
  const dialog = dialogOf(page);
  await dialog.getByLabel("E-mail address").fill(email);
  await dialog.locator('input[autocomplete="current-password"]').fill(password);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
}

test("the dialog opens automatically, and unsaved input is saved after sign-in", async () => {
  const opened = await scene.openAs("editor", { path: "/ui/services/new", expects: [401] });
  const { page, complaints } = opened;
  await typeService(page, "careful");
  await endSessionsOf("editor");
  await dialogOf(page).waitFor();
  // The user is known: only the password is required.
  await eventually(
    async () => (await page.evaluate("document.activeElement.autocomplete")) === "current-password",
  );
  expect(await checkAccessible(page)).toEqual([]);
  // The dialog cannot be dismissed.
  await page.keyboard.press("Escape");
  await signInAt(page, emailOf("editor"), "wrong");
  await page.getByText("Wrong e-mail address or password.").waitFor();
  await signInAt(page, emailOf("editor"), UI_PASSWORD);
  await dialogOf(page).waitFor({ state: "detached" });
  expect(await page.getByRole("textbox", { name: "Name", exact: true }).inputValue()).toBe(
    "careful",
  );
  expect(await page.getByLabel("Description").inputValue()).toBe("typed with great care");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Service careful created").waitFor();
  expect((await read("/services")).map(({ name }) => name)).toContain("careful");
  expect(complaints).toEqual([]);
  await opened.close();
});

test("a request without a session waits for the sign-in and is then sent once", async () => {
  const opened = await scene.openAs("editor", { path: "/ui/services/new", expects: [401] });
  const { page, close } = opened;
  await typeService(page, "waiting");
  // Without the event stream, the page learns of it only from a request.
  await page.route("**/api/v1/auth/me", (route) => route.abort());
  await endSessionsOf("editor");
  const refused = page.waitForResponse(
    (response) => response.url().endsWith("/services") && response.status() === 401,
  );
  await page.getByRole("button", { name: "Create" }).click();
  await refused;
  await page.unroute("**/api/v1/auth/me");
  await signInAt(page, emailOf("editor"), UI_PASSWORD);
  await page.getByText("Service waiting created").waitFor();
  expect((await read("/services")).filter(({ name }) => name === "waiting")).toHaveLength(1);
  await close();
});

test("another user who signs in there gets neither the form nor the waiting request", async () => {
  const { page, close } = await scene.openAs("editor", {
    path: "/ui/services/new",
    expects: [401],
  });
  await typeService(page, "not-mine");
  await page.route("**/api/v1/auth/me", (route) => route.abort());
  await endSessionsOf("editor");
  await page.getByRole("button", { name: "Create" }).click();
  await dialogOf(page).waitFor();
  await page.unroute("**/api/v1/auth/me");
  // Confirms leaving with unsaved changes.
  page.on("dialog", (question) => void question.accept());
  await signInAt(page, emailOf("admin"), UI_PASSWORD);
  await page.waitForURL(`${scene.gateway.admin}/`);
  await page.getByRole("heading", { name: "Dashboard" }).waitFor();
  await isQuiet(page);
  expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain("not-mine");
  expect((await read("/services")).map(({ name }) => name)).not.toContain("not-mine");
  await close();
});

test("a reload in the middle loses nothing either", async () => {
  const { page, close } = await scene.openAs("editor", {
    path: "/ui/services/new",
    expects: [401],
  });
  await typeService(page, "reloaded");
  await eventually(async () =>
    String(await page.evaluate("JSON.stringify(sessionStorage)")).includes("3000"),
  );
  await endSessionsOf("editor");
  page.on("dialog", (question) => void question.accept());
  await page.reload();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByLabel("E-mail address").fill(emailOf("editor"));
  await page.locator('input[autocomplete="current-password"]').fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("This form shows unsaved input from a draft").waitFor();
  expect(await page.getByRole("textbox", { name: "Name", exact: true }).inputValue()).toBe(
    "reloaded",
  );
  expect(await page.getByLabel("Port").inputValue()).toBe("3000");
  await close();
});

test("the draft of a plugin contains everything but its secrets", async () => {
  const { page, close } = await scene.openAs("editor", {
    path: "/ui/plugins/new?plugin=access-log",
    expects: [401],
  });
  const http = { url: "https://logs.example/in", headers: { "X-Token": "canary-of-a-draft" } };
  await page.getByRole("tab", { name: "JSON" }).click();
  await page
    .getByLabel("Configuration", { exact: true })
    .fill(JSON.stringify({ sinks: [{ http }] }));
  const kept = async () => String(await page.evaluate("JSON.stringify(sessionStorage)"));
  await eventually(async () => (await kept()).includes("logs.example"));
  expect(await kept()).not.toContain("canary-of-a-draft");
  page.on("dialog", (question) => void question.accept());
  await page.reload();
  await page.getByText("Secrets are not stored in drafts: enter them again.").waitFor();
  await page.getByRole("tab", { name: "JSON" }).click();
  const restored = JSON.parse(await page.getByLabel("Configuration", { exact: true }).inputValue());
  expect(restored.sinks).toEqual([{ http: { ...http, headers: { "X-Token": "" } } }]);
  await close();
});
