// Sign-in page: errors, setup and prompt of a second factor, rate limit of attempts.
import { expect } from "bun:test";
import { base32 } from "oslo/encoding";
import type { Page } from "playwright-core";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  emailOf,
  isQuiet,
  screenshots,
  useUi,
  UI_PASSWORD,
} from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  await scene.createPeople();
});

async function fillIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel("E-mail address").fill(email);
  await page.locator('input[autocomplete="current-password"]').fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

async function giveCode(page: Page, code: string): Promise<void> {
  await page.getByRole("textbox", { name: "Code" }).fill(code);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

const isIn = (page: Page) =>
  page.getByRole("navigation", { name: "Pages" }).waitFor({ state: "attached" });

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Your account and colors" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}

test("a wrong password shows an error, a right one opens the requested page", async () => {
  const opened = await scene.open({ path: "/ui/services?q=web", expects: [401] });
  const { page, complaints } = opened;
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "sign-in");
  await fillIn(page, emailOf("editor"), "not this one");
  await page.getByRole("alert").getByText("Wrong e-mail address or password.").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await fillIn(page, emailOf("editor"), UI_PASSWORD);
  await page.getByRole("heading", { name: "Services", exact: true }).waitFor();
  await isQuiet(page);
  expect(page.url()).toBe(`${scene.gateway.admin}/ui/services?q=web`);
  await signOut(page);
  expect(await page.evaluate("sessionStorage.length")).toBe(0);
  expect(complaints).toEqual([]);
  await opened.close();
});

test("a failed single sign-on shows the reason", async () => {
  const { page, close } = await scene.open({ path: "/?sso_error=email_unverified" });
  const alert = page.getByRole("alert");
  await alert.getByText("has not verified your e-mail address").waitFor();
  await page.goto(`${scene.gateway.admin}/?sso_error=%3Cscript%3E`);
  await alert.getByText("ask an admin of the gateway").waitFor();
  await close();
});

test("a second factor is set up with a QR code, required, and turned off", async () => {
  const opened = await scene.openAs("viewer", {
    signsIn: true,
    path: "/ui/account",
    expects: [401, 403],
  });
  const { page, complaints } = opened;
  await page.getByRole("button", { name: "Set up" }).click();
  await page.getByLabel("Your password").fill("wrong one");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("Is wrong").waitFor();
  await page.getByLabel("Your password").fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("img", { name: "QR code for your authenticator app" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "second-factor");

  const shown = (await page.locator(".mantine-Code-root").first().textContent()) ?? "";
  const key = base32.decode(shown.replaceAll(/\s/g, ""));
  const step = stepAt(Date.now());
  await page.getByRole("textbox", { name: "Code" }).fill("12");
  await page.getByRole("button", { name: "Turn on" }).click();
  await page.getByText("Six digits", { exact: true }).waitFor();
  await page.getByRole("textbox", { name: "Code" }).fill(await hotp(key, step));
  await page.getByRole("button", { name: "Turn on" }).click();
  const list = page.getByRole("list", { name: "Recovery codes" });
  await list.waitFor();
  const codes = await list.getByRole("listitem").allInnerTexts();
  expect(codes).toHaveLength(10);
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByLabel("I have stored them in a safe place").check();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByText("10 of 10 recovery codes left").waitFor();
  const kept = (await page.evaluate("JSON.stringify(sessionStorage)")) as string;
  for (const secret of [shown, ...codes, UI_PASSWORD]) expect(kept).not.toContain(secret);

  await signOut(page);
  await fillIn(page, emailOf("viewer"), UI_PASSWORD);
  await page.getByText(`Signing in as ${emailOf("viewer")}`).waitFor();
  await giveCode(page, "000000");
  await page.getByText("Wrong or already used code").waitFor();
  // An unused code that is not expired.
  await giveCode(page, await hotp(key, Math.max(step + 1, stepAt(Date.now()))));
  await isIn(page);
  await signOut(page);
  await fillIn(page, emailOf("viewer"), UI_PASSWORD);
  await giveCode(page, codes[3] ?? "");
  await isIn(page);

  await page.goto(`${scene.gateway.admin}/ui/account`);
  await page.getByText("9 of 10 recovery codes left").waitFor();
  await page.getByRole("button", { name: "Turn off" }).click();
  await page.getByLabel("Your password").fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Turn off" }).click();
  await page.getByText("Second factor turned off").waitFor();
  await page.getByRole("button", { name: "Set up" }).waitFor();
  expect(complaints).toEqual([]);
  await opened.close();
});

test("a new password ends the other sessions, and the list of sessions shows it", async () => {
  const elsewhere = await scene.openAs("editor", { signsIn: true });
  const opened = await scene.openAs("editor", {
    signsIn: true,
    path: "/ui/account",
    expects: [400, 403],
  });
  const { page, complaints } = opened;
  await page.getByText("this one").waitFor();
  const ends = page.getByRole("button", { name: /^End the session in Chrome on Linux/ });
  await ends.first().waitFor();
  await screenshots(page, "account");
  expect(await checkAccessible(page)).toEqual([]);

  const change = page.getByRole("form", { name: "Change the password" });
  await change.getByLabel("Current password").first().fill("not this");
  await change.getByLabel("New password").first().fill("password1234");
  await page.getByRole("button", { name: "Change the password" }).click();
  await change.locator(".mantine-PasswordInput-error").first().waitFor();
  await change.getByLabel("New password").first().fill("another horse battery");
  await change.getByLabel("Current password").first().fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByText("Password changed").waitFor();
  await eventually(async () => (await ends.count()) === 0);
  expect(await change.getByLabel("New password").first().inputValue()).toBe("");
  expect(complaints).toEqual([]);
  await Promise.all([opened.close(), elsewhere.close()]);
});

test("after too many attempts the page counts down and disables the button", async () => {
  const { page, close, complaints } = await scene.open({ expects: [401, 429] });
  const login = { email: emailOf("admin"), password: "wrong" };
  for (let attempt = 0; attempt < 10; attempt++)
    await scene.gateway.api("POST", "/api/v1/auth/login", login);
  await fillIn(page, emailOf("admin"), UI_PASSWORD);
  const alert = page.getByRole("alert");
  await alert.getByText(/Too many attempts\. Try again in [1-5] min( \d+ s)?\./).waitFor();
  const button = page.getByRole("button", { name: "Sign in", exact: true });
  expect(await button.isDisabled()).toBe(true);
  const first = await alert.textContent();
  await eventually(async () => (await alert.textContent()) !== first);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});
