// Policies on the page of an application: a password in two clicks, its users at another site, and the other cards.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import type { Locator, Page } from "playwright-core";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, test, scene } = useUi();

beforeAll(async () => {
  await scene.createPeople();
  const { port } = scene.serve(() => new Response("it runs"));
  for (const name of ["photos", "films"])
    await call("POST", "applications", {
      name,
      domains: [`${name}.test`],
      upstream: `http://127.0.0.1:${port}`,
      https: { mode: "off" },
    });
});

// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
async function call(method: string, path: string, body?: object): Promise<any> {
  const { gateway } = scene;
  const cookie = await scene.cookieOf("admin");
  return await (await gateway.api(method, `/api/v1/${path}`, body, cookie)).json();
}

const visit = async (name: string, login = "") =>
  (
    await fetch(`http://127.0.0.1:${scene.gateway.httpPort}/`, {
      headers: {
        host: `${name}.test`,
        ...(login === "" ? {} : { authorization: `Basic ${btoa(login)}` }),
      },
    })
  ).status;

async function open(name: string, options: object = {}) {
  const { id } = await call("GET", `applications/${name}`);
  return await scene.openAs("admin", { path: `/ui/applications/${id}`, ...options });
}

const policies = (page: Page) => page.getByRole("region", { name: "Policies" });
const turnOn = (within: Locator, name: string) =>
  within.getByRole("switch", { name: new RegExp(`^${name}`) }).press("Space");
async function save(page: Page, name: string) {
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(`Application ${name} saved`).first().waitFor();
}

test("a password takes the switch, a typed user, and Save", async () => {
  const { page, complaints, close } = await open("photos", { expects: [400, 409] });
  const cards = policies(page);
  await turnOn(cards, "Password");
  await cards.getByText("No user can sign in yet: add one.").waitFor();
  await cards.getByRole("textbox", { name: "New user" }).fill("anna");
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Save" }).click();
  await cards.getByText("Password is required").waitFor();
  const password = cards.locator('input[type="password"]');
  await password.fill("open sesame");
  await save(page, "photos");
  await cards.getByRole("link", { name: "anna" }).waitFor();
  expect(await cards.getByText("No user can sign in").count()).toBe(0);
  expect([await visit("photos"), await visit("photos", "anna:open sesame")]).toEqual([401, 200]);
  expect((await policies(page).textContent())?.toLowerCase()).not.toContain("plugin");
  await screenshots(page, "application-policies");

  // The name exists: the error is at its field, and nothing is saved.
  await cards.getByRole("textbox", { name: "New user" }).fill("anna");
  await password.fill("another one");
  await page.getByRole("button", { name: "Save" }).click();
  await cards.getByText("This name exists already").waitFor();
  expect(await visit("photos", "anna:another one")).toBe(401);
  expect(complaints).toEqual([]);
  await close();
});

test("the users of a list come in at another site with that list", async () => {
  const { page, complaints, close } = await open("films");
  const cards = policies(page);
  await turnOn(cards, "Password");
  await cards.getByRole("link", { name: "anna" }).waitFor();
  await save(page, "films");
  expect([await visit("films"), await visit("films", "anna:open sesame")]).toEqual([401, 200]);
  await turnOn(cards, "Password");
  await save(page, "films");
  // The message of the save before may still be shown.
  await eventually(async () => (await visit("films")) === 200);
  expect(complaints).toEqual([]);
  await close();
});

test("the other cards, with errors at their fields", async () => {
  const { page, complaints, close } = await open("films", { expects: [400] });
  const cards = policies(page);
  await turnOn(cards, "Single sign-on");
  await cards.getByRole("combobox", { name: "Provider" }).click();
  await page.getByRole("option", { name: "Pocket ID" }).click();
  await turnOn(cards, "Rate limit");
  await cards.getByRole("textbox", { name: "Requests" }).fill("500");
  await turnOn(cards, "Headers");
  await turnOn(cards, "Redirect");
  await cards.getByRole("textbox", { name: "From" }).fill("/old");
  await cards.getByRole("textbox", { name: "To" }).fill("/new");
  await turnOn(cards, "Upload size");
  await turnOn(cards, "Access by network");
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Save" }).click();
  await cards
    .getByText(/required|must be/i)
    .first()
    .waitFor();
  await cards.getByRole("textbox", { name: "URL" }).fill("http://127.0.0.1:9");
  await save(page, "films");
  const made = await call("GET", "applications/films");
  expect([made.policies, made.access, made.drift]).toMatchObject([
    {
      login: null,
      sso: { provider: "pocket_id", url: "http://127.0.0.1:9" },
      rate_limit: { requests: 500, window: 60 },
      headers: { security: true, set: {} },
      redirect: { from: "/old", to: "/new" },
      upload: { max_body_bytes: 104_857_600 },
    },
    "private",
    [],
  ]);
  expect(complaints).toEqual([]);
  await screenshots(page, "application-policies-all");
  await close();
});

test("maintenance has a page, and networks that are served as usual", async () => {
  const { page, complaints, close } = await open("photos", { expects: [400] });
  const cards = policies(page);
  await turnOn(cards, "Maintenance");
  const exempt = cards.getByRole("combobox", { name: "Exempt networks" });
  await exempt.fill("10.0.0.0/99");
  await exempt.press("Enter");
  await page.getByRole("button", { name: "Save" }).click();
  await exempt.and(page.locator("[aria-invalid=true]")).waitFor();
  await exempt.press("Backspace");
  await exempt.fill("127.0.0.1");
  await exempt.press("Enter");
  await cards.getByRole("textbox", { name: "Page" }).fill("<p>Back at noon</p>");
  expect(await checkAccessible(page)).toEqual([]);
  await save(page, "photos");
  expect((await call("GET", "applications/photos")).maintenance_options).toEqual({
    bypass_cidrs: ["127.0.0.1"],
    html: "<p>Back at noon</p>",
    retry_after: 300,
  });
  expect(await visit("photos")).toBe(401);
  await exempt.press("Backspace");
  await page.getByRole("button", { name: "Save" }).click();
  await eventually(async () => (await visit("photos")) === 503);
  // No notification covers the button.
  await turnOn(cards, "Maintenance");
  await page.getByRole("button", { name: "Save" }).click();
  await eventually(async () => (await visit("photos")) === 401);
  expect(complaints).toEqual([]);
  await close();
});

test("a change of a policy's plugin by hand is drift, which names the policy", async () => {
  const { plugins } = await call("GET", "applications/films");
  const { id } = plugins.find(({ name }: { name: string }) => name === "rate-limit");
  await call("PATCH", `plugins/${id}`, { config: { status: 503 } });
  const { page, complaints, close } = await open("films");
  const drift = page.getByRole("region", { name: "Drift" });
  await drift.getByRole("cell", { name: "config.status" }).waitFor();
  await drift.getByRole("link", { name: "policy films rate limit" }).waitFor();
  await page.getByRole("button", { name: "Revert changes" }).click();
  await page.getByRole("button", { name: "Revert", exact: true }).click();
  await drift.waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
  await close();
});

test("a viewer sees the policies, and changes nothing", async () => {
  const { id } = await call("GET", "applications/photos");
  const { page, complaints, close } = await scene.openAs("viewer", {
    path: `/ui/applications/${id}`,
    width: 390,
  });
  await isQuiet(page);
  const cards = policies(page);
  expect(await cards.getByRole("switch", { name: /^Password/ }).isDisabled()).toBe(true);
  await cards.getByRole("link", { name: "anna" }).waitFor();
  expect(await cards.locator('input[type="password"]').count()).toBe(0);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});
