// The pages of consumers in a browser: a key that is shown once and works, rotation, search among many, what viewers see.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  useUi,
  type UiPage,
} from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let admin: UiPage;
let origin: Bun.Server<undefined>;

beforeAll(async () => {
  origin = scene.serve(() => new Response("hello"));
  const { gateway } = scene;
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "shop",
    hosts: ["shop.test"],
    service_id: "web",
  });
  await gateway.ok("POST", "/api/v1/plugins", { name: "key-auth", route_id: "shop" });
  await scene.createPeople();
  admin = await scene.openAs("admin", { path: "/ui/consumers" });
});

/** The status of a request with this key. */
const statusWith = async (key: string) => {
  const headers = { Host: "shop.test", "X-API-Key": key };
  const { status } = await fetch(`http://127.0.0.1:${scene.gateway.httpPort}/`, { headers });
  return status;
};

/** The secret that the dialog shows, which is then closed. */
async function takeSecret(page: Page): Promise<string> {
  const dialog = page.getByRole("dialog").filter({ hasText: "Copy it now" });
  const secret = (await dialog.locator("pre").textContent()) ?? "";
  await dialog.getByRole("button", { name: "I have copied it" }).click();
  await dialog.waitFor({ state: "hidden" });
  return secret;
}

/** Whether the tab's storage contains a text. */
const isKept = async (page: Page, text: string) =>
  (
    await page.evaluate<string>("JSON.stringify([{...sessionStorage}, {...localStorage}])")
  ).includes(text);

let key = "";

test("a consumer gets a key that is shown once and authenticates requests", async () => {
  const { page, complaints } = admin;
  const remains = async () => (await page.content()).includes(key) || (await isKept(page, key));
  await page.getByText("No consumers yet").waitFor();
  await page.getByRole("link", { name: "Create the first consumer" }).click();
  await page.getByLabel("Username").fill("two words ");
  await page.getByText("must be printable ASCII without spaces at its ends").waitFor();
  await page.getByLabel("Username").fill("alice");
  await page.getByLabel("Custom ID").fill("C-1042");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Consumer alice created").waitFor();
  await page.getByText("No credentials yet for alice").waitFor();

  await page.getByRole("button", { name: "Add a credential" }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByLabel("Name", { exact: true }).fill("phone");
  expect(await checkAccessible(page)).toEqual([]);
  await drawer.getByRole("button", { name: "Create" }).click();
  key = await takeSecret(page);
  expect(key).toStartWith("slt_");
  const row = page.getByRole("group", { name: "phone" });
  expect(await row.textContent()).toContain(key.slice(0, 8));
  expect(await remains()).toBe(false);
  await page.reload();
  await isQuiet(page);
  await row.waitFor();
  expect(await remains()).toBe(false);
  expect([await statusWith(key), await statusWith(`${key}x`)]).toEqual([200, 401]);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "consumer");
  expect(complaints).toEqual([]);
});

test("after a rotation the old key is accepted for the grace period, and no key after its deletion", async () => {
  const { page, complaints } = admin;
  await page.getByRole("button", { name: "Actions of phone" }).click();
  await page.getByRole("menuitem", { name: "Rotate" }).click();
  await page.getByRole("radio", { name: "For an hour" }).click();
  await page.getByRole("button", { name: "Rotate" }).click();
  const next = await takeSecret(page);
  expect(next).not.toBe(key);
  expect([await statusWith(key), await statusWith(next)]).toEqual([200, 200]);
  await page.getByText("Previous secret expires").waitFor();

  await page.getByRole("switch", { name: "Enable phone" }).press("Space");
  await eventually(async () => (await statusWith(next)) === 401);
  await page.getByRole("button", { name: "Actions of phone" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No credentials yet for alice").waitFor();
  expect(complaints).toEqual([]);
});

test("an entered password is never stored in the tab, and no plugin verifies it yet", async () => {
  const { page, complaints } = admin;
  await page.getByRole("button", { name: "Add a credential" }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByRole("radio", { name: "Password" }).click();
  await drawer.getByText("Enter manually").click();
  await drawer.getByLabel("Your password").fill("correct horse of alice");
  expect(await isKept(page, "correct horse of alice")).toBe(false);
  await drawer.getByRole("button", { name: "Create" }).click();
  await drawer.waitFor({ state: "hidden" });
  await page.getByRole("group", { name: "Password alice" }).waitFor();
  await page.getByRole("link", { name: "Add basic-auth" }).waitFor();
  expect(complaints).toEqual([]);
});

test("the gateway searches when a page cannot show all consumers", async () => {
  const { page, complaints } = admin;
  const make = async (index: number) => {
    const username = `client-${String(index).padStart(4, "0")}`;
    const url = `${scene.gateway.admin}/api/v1/consumers`;
    const answer = await page.request.post(url, { data: { username, groups: ["many"] } });
    expect(answer.status()).toBe(200);
  };
  for (let first = 0; first < 220; first += 20)
    await Promise.all(Array.from({ length: 20 }, (_, at) => make(first + at)));
  await page.goto(`${scene.gateway.admin}/ui/consumers`);
  await page.getByText("These are the first 200").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "consumers");
  const search = page.getByLabel("Search consumers");
  await search.fill("client-0219");
  await page.getByRole("link", { name: "client-0219" }).waitFor();
  await search.fill("client-0219 nothing like this");
  await page.getByText("No matches").waitFor();
  // The field and its text stay.
  expect(await search.inputValue()).toBe("client-0219 nothing like this");
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByText("These are the first 200").waitFor();
  expect(complaints).toEqual([]);
});
