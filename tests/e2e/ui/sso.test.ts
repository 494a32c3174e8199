// Single sign-on set up and used in a browser, with a certified provider: the form, its test, users, failures.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { type RealProvider, startProvider } from "../../integration/sso/real-provider.ts";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  useUi,
  UI_PASSWORD,
  type UiPage,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi();

const SECRET = "canary-of-the-client";
const CALLBACK = "/api/v1/auth/sso/callback";

let provider: RealProvider;

beforeAll(async () => {
  await scene.createPeople();
  provider = await startProvider(
    {
      "ann@example.com": { email_verified: true, name: "Ann", groups: ["ops"] },
      "eve@example.com": { email_verified: false, name: "Eve", groups: ["ops"] },
    },
    [
      {
        client_id: "sluice",
        client_secret: SECRET,
        token_endpoint_auth_method: "client_secret_basic",
      },
    ],
    [`${scene.gateway.admin}${CALLBACK}`],
  );
});
afterAll(async () => {
  provider?.stop();
});

/** Problems of the gateway's own pages; the provider's are ignored. */
const ownComplaints = ({ complaints }: UiPage) =>
  complaints.filter((line) => !/https:\/\/fonts\.googleapis\.com/.test(line) && !isProviders(line));
const isProviders = (line: string) => line.includes(provider.issuer);

/** Signs in at the provider and agrees to everything. */
async function signInAtProvider(page: Page, email: string): Promise<void> {
  await page.locator('input[name="login"]').fill(email);
  await page.locator('input[name="password"]').fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

async function openWithProvider(path: string): Promise<UiPage> {
  const opened = await scene.open({ path, expects: [401] });
  // The provider's pages request a font.
  await opened.page.context().route("https://fonts.googleapis.com/**", (route) => route.abort());
  return opened;
}

test("an admin sets it up, tests it, and never sees the secret again", async () => {
  const opened = await scene.openAs("admin", { path: "/ui/single-sign-on", expects: [400] });
  const { page, complaints } = opened;
  await page.getByText(`${scene.gateway.admin}${CALLBACK}`).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("switch", { name: "Enabled" }).check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Issuer is required").first().waitFor();
  await page.getByRole("switch", { name: "Enabled" }).uncheck();

  await page.getByLabel("Issuer").fill(`${provider.issuer}/wrong`);
  await page.getByLabel("Client ID").fill("sluice");
  await page.getByRole("textbox", { name: "Client secret" }).fill(SECRET);
  await page.getByRole("button", { name: "Save and test" }).click();
  await page.getByText("Some checks failed.").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByLabel("Issuer").fill(provider.issuer);
  await page.getByLabel("Groups claim").fill("groups");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByLabel("Roles by group: name").fill("ops");
  await page.getByRole("radiogroup", { name: "Roles by group: value" }).getByText("editor").click();
  await page.getByRole("switch", { name: "Create users automatically" }).check();
  await page.getByRole("switch", { name: "Enabled" }).check();
  await page.getByRole("button", { name: "Advanced" }).click();
  await page.getByLabel("Button text").fill("Sign in with Example ID");
  await page.getByRole("combobox", { name: "Scopes" }).fill("groups");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Save and test" }).click();
  await page.getByText("Saved. Single sign-on is on").waitFor();
  await page.getByText("All automatic checks passed").waitFor();
  await screenshots(page, "sso-tested");

  await page.reload();
  await isQuiet(page);
  const secret = page.getByRole("textbox", { name: "Client secret" });
  await secret.waitFor();
  expect(await secret.getAttribute("placeholder")).toBe("Unchanged; type to replace it");
  expect(await secret.inputValue()).toBe("");
  expect(await page.content()).not.toContain(SECRET);
  expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain(SECRET);
  expect(complaints).toEqual([]);
  await opened.close();
});

test("a new user signs in with it and gets the requested page", async () => {
  const opened = await openWithProvider("/ui/routes?q=shop");
  const { page } = opened;
  await page.getByRole("link", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(page, "ann@example.com");
  await page.waitForURL(`${scene.gateway.admin}/ui/routes?q=shop`);
  await isQuiet(page);
  await page.goto(`${scene.gateway.admin}/ui/account`);
  await page.getByText("You have no password: you use single sign-on.").waitFor();
  await page.getByText("An admin can set one.").waitFor();
  await page.getByText("editor", { exact: true }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  expect(ownComplaints(opened)).toEqual([]);
  await opened.close();
});

test("a denied sign-in shows the reason", async () => {
  const { page, close } = await openWithProvider("/");
  await page.getByRole("link", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(page, "eve@example.com");
  await page.getByText("has not verified your e-mail address").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await close();
});

test("after a session ends in a form, sign-in uses a new tab, and the form stays", async () => {
  const opened = await openWithProvider("/ui/services/new");
  const { page } = opened;
  await page.getByRole("link", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(page, "ann@example.com");
  await page.waitForURL(`${scene.gateway.admin}/ui/services/new`);
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("kept");
  await page.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.1");
  await page.getByLabel("Port").fill("3000");
  await page.context().clearCookies({ name: /^sluice_session_/ });
  await page.getByRole("button", { name: "Create" }).click();
  const tab = page.context().waitForEvent("page");
  await page.getByRole("dialog").getByRole("link", { name: "Sign in with Example ID" }).click();
  const second = await tab;
  // Her session at the provider is still valid, so the tab finishes at once.
  await eventually(() => second.isClosed());
  await page.getByText("Service kept created").waitFor();
  expect(ownComplaints(opened)).toEqual([]);
  await opened.close();
});

test("an admin sees linked users, and can set a password", async () => {
  const { page, close, complaints } = await scene.openAs("admin", { path: "/ui/users" });
  await page.getByRole("link", { name: "Ann" }).click();
  await page.getByText("linked to an account of the identity provider").waitFor();
  await page.getByRole("button", { name: "Set a password" }).click();
  const dialog = page.getByRole("dialog", { name: "Password of Ann" });
  await dialog.locator("input").fill(`${UI_PASSWORD} of Anns`);
  await dialog.getByRole("button", { name: "Set the password" }).click();
  await page.getByText("Password of Ann changed").waitFor();
  const login = { email: "ann@example.com", password: `${UI_PASSWORD} of Anns` };
  const answer = await scene.gateway.api("POST", "/api/v1/auth/login", login);
  expect(answer.status).toBe(200);
  expect(complaints).toEqual([]);
  await close();
});
