// Revisions in a browser: the changes of each, the preview of a restore, and its effect on traffic.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;
/** The configuration before the mistake. */
let good: { revision: number; document: string };

const plain = async (): Promise<string> => {
  const text = await (await scene.gateway.api("GET", "/api/v1/export?format=json")).text();
  return text;
};
const visit = async () => {
  const headers = { host: "shop.example" };
  const answer = await fetch(`http://127.0.0.1:${scene.gateway.httpPort}/`, { headers });
  return [answer.status, await answer.text()];
};
const revision = async (): Promise<number> =>
  (await scene.gateway.ok("GET", "/api/v1/admin/status")).revision;

beforeAll(async () => {
  const { gateway } = scene;
  origin = scene.serve(() => new Response("the shop"));
  await gateway.ok("POST", "/api/v1/services", {
    name: "web",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "shop",
    service_id: "web",
    hosts: ["shop.example"],
    tags: ["a", "b", "c"],
  });
  good = { revision: await revision(), document: await plain() };
  await gateway.ok("PATCH", "/api/v1/routes/shop", {
    hosts: ["elsewhere.example"],
    tags: ["a", "d", "c"],
    description: "moved by mistake",
  });
  await gateway.ok("POST", "/api/v1/services", { name: "left-over" });
});

test("a restore reverts the configuration, and traffic follows", async () => {
  expect((await visit())[0]).toBe(404);
  const { page, complaints, close } = await scene.open({ path: "/ui/revisions" });
  await page.getByRole("button", { name: "Continue without users" }).click();
  await page.getByRole("table", { name: "Revisions" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);

  // The changes of the mistake, field by field.
  await page.getByRole("link", { name: String(good.revision + 1), exact: true }).click();
  await page.getByText("elsewhere.example").waitFor();
  await page.getByText("shop.example").waitFor();
  expect(await checkAccessible(page)).toEqual([]);

  await page.getByRole("link", { name: "Older revision" }).click();
  await page.getByRole("heading", { name: `Revision ${good.revision}` }).waitFor();
  await page.getByRole("link", { name: "Restore", exact: true }).click();
  await page.getByRole("button", { name: /Changed route shop/ }).waitFor();
  await page.getByRole("button", { name: /Removed service left-over/ }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "restore");
  expect((await visit())[0]).toBe(404);

  await page.getByRole("button", { name: `Restore revision ${good.revision}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
  await page.getByText(/Live on 2 workers, revision \d+/).waitFor();
  await page.getByText(`restore revision ${good.revision}`, { exact: true }).waitFor();
  expect(await visit()).toEqual([200, "the shop"]);
  expect(await plain()).toBe(good.document);
  expect(await revision()).toBe(good.revision + 3);
  expect(complaints).toEqual([]);
  await close();
});

test("the list is searched and filtered by its URL, and a missing revision is reported", async () => {
  await scene.createPeople();
  const { page, complaints, close } = await scene.openAs("viewer", {
    path: "/ui/revisions?q=restore",
    expects: [404],
  });
  await eventually(async () => (await page.locator(".list-row").count()) === 1);
  await page.getByRole("button", { name: "Clear the search" }).click();
  await eventually(async () => (await page.locator(".list-row").count()) > 4);
  await page.getByLabel("Search revisions").fill("no such thing");
  await page.getByRole("heading", { name: "No matches" }).waitFor();

  await page.goto(`${scene.gateway.admin}/ui/revisions/${good.revision}`);
  await isQuiet(page);
  expect(await page.getByRole("link", { name: "Restore", exact: true }).count()).toBe(0);
  await page.goto(`${scene.gateway.admin}/ui/revisions/99999`);
  await page.getByText("revision 99999 does not exist or is not kept").waitFor();
  expect(complaints).toEqual([]);
  await close();
});
