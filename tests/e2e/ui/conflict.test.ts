// Two users edit one route at the same time in two browsers: the second resolves the conflict, and nothing is lost.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import {
  checkAccessible,
  emailOf,
  screenshots,
  useUi,
  UI_PASSWORD,
} from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let id = "";

beforeAll(async () => {
  const { gateway } = scene;
  await gateway.ok("POST", "/api/v1/services", { name: "web" });
  const route = { name: "shop", service_id: "web", hosts: ["shop.test"], description: "The shop" };
  ({ id } = await gateway.ok("POST", "/api/v1/routes", route));
  await scene.createPeople();
});

async function stored(): Promise<{ hosts: string[]; priority: number; description: string }> {
  const { gateway } = scene;
  const credentials = { email: emailOf("viewer"), password: UI_PASSWORD };
  const login = await gateway.api("POST", "/api/v1/auth/login", credentials);
  const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const answer = await gateway.api("GET", `/api/v1/routes/${id}`, undefined, { cookie });
  return (await answer.json()) as { hosts: string[]; priority: number; description: string };
}

async function addHost(page: Page, host: string): Promise<void> {
  const hosts = page.getByRole("combobox", { name: "Hosts" });
  await hosts.fill(host);
  await hosts.press("Enter");
}

async function save(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Save", exact: true }).click();
}

test("changes of different fields are merged, and the user chooses for the same field", async () => {
  const path = `/ui/routes/${id}`;
  const first = await scene.openAs("admin", { path });
  const second = await scene.openAs("editor", { path, expects: [412] });

  // One changes the hosts and the description, the other the priority and the description.
  await addHost(first.page, "store.test");
  await first.page.getByRole("textbox", { name: "Description" }).fill("The store");
  await second.page.getByLabel("Priority", { exact: true }).fill("7");
  await second.page
    .getByRole("textbox", { name: "Description" })
    .fill("The shop of the second one");
  await save(first.page);
  await first.page.getByText("Route shop saved").waitFor();

  await save(second.page);
  const dialog = second.page.getByRole("dialog", { name: "Concurrent change" });
  await dialog.waitFor();
  const hosts = dialog.getByRole("radiogroup", { name: "hosts" });
  const description = dialog.getByRole("radiogroup", { name: "description" });
  expect(await hosts.getByLabel(/Use theirs/).isChecked()).toBe(true);
  expect(await description.getByLabel(/Keep mine/).isChecked()).toBe(true);
  expect(await dialog.getByRole("radiogroup").count()).toBe(2);
  expect(await checkAccessible(second.page)).toEqual([]);
  await screenshots(second.page, "conflict");
  await dialog.getByRole("button", { name: "Save again" }).click();
  await second.page.getByText("Route shop saved").waitFor();

  const { hosts: all, priority, description: text } = await stored();
  expect({ all, priority, text }).toEqual({
    all: ["shop.test", "store.test"],
    priority: 7,
    text: "The shop of the second one",
  });
  await second.page
    .getByRole("button", { name: "Save", exact: true })
    .and(second.page.locator(":disabled"))
    .waitFor();
  expect([first.complaints, second.complaints]).toEqual([[], []]);
  await first.close();
  await second.close();
});

test("the same change by both users is no conflict", async () => {
  const path = `/ui/routes/${id}`;
  const first = await scene.openAs("admin", { path });
  const second = await scene.openAs("editor", { path, expects: [412] });
  for (const { page } of [first, second])
    await page.getByRole("textbox", { name: "Description" }).fill("Said by both");
  await second.page.getByLabel("Priority", { exact: true }).fill("9");
  await save(first.page);
  await first.page.getByText("Route shop saved").waitFor();
  await save(second.page);
  await second.page.getByText("Route shop saved").waitFor();
  expect(await second.page.getByRole("dialog").count()).toBe(0);
  expect(await stored()).toMatchObject({ description: "Said by both", priority: 9 });
  expect([first.complaints, second.complaints]).toEqual([[], []]);
  await first.close();
  await second.close();
});
