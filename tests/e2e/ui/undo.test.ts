// "Undo" in the notification of a change: after switches, deletions and bulk actions, and never of changes by others.
import { expect } from "bun:test";
import { checkAccessible, emailOf, isQuiet, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let root: { cookie: string };

beforeAll(async () => {
  const post = (path: string, body: unknown) => scene.gateway.ok("POST", `/api/v1/${path}`, body);
  for (const name of ["a", "b", "c"]) {
    await post("services", { name, targets: [{ host: "127.0.0.1", port: 3000 }] });
    await post("routes", { name, service_id: name, hosts: [`${name}.test`] });
  }
  await scene.createPeople();
  root = await scene.cookieOf("admin");
});

const names = async (resource: string) => {
  const answer = await scene.gateway.api("GET", `/api/v1/${resource}`, undefined, root);
  const all = (await answer.json()) as { name: string; enabled: boolean }[];
  return all.map(({ name, enabled }) => `${name}${enabled ? "" : " off"}`).toSorted();
};

test("a switch, a bulk action and a cascade are undone", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/routes",
    // The dry run of a deletion names dependents.
    expects: [409],
  });
  const undo = page.getByRole("button", { name: "Undo" });
  const undone = async () => {
    await undo.click();
    await page.getByText("Undone", { exact: true }).first().waitFor();
    await undo.waitFor({ state: "detached" });
  };
  await page.getByRole("switch", { name: "Enable b" }).click();
  await page.getByText("Route b disabled").waitFor();
  expect(await names("routes")).toEqual(["a", "b off", "c"]);
  expect(await checkAccessible(page)).toEqual([]);
  await undone();
  expect(await names("routes")).toEqual(["a", "b", "c"]);

  await page.getByRole("checkbox", { name: "Select all" }).check();
  await page.getByRole("button", { name: "Disable", exact: true }).click();
  await page.getByText("3 routes disabled").waitFor();
  expect(await names("routes")).toEqual(["a off", "b off", "c off"]);
  await undone();
  expect(await names("routes")).toEqual(["a", "b", "c"]);

  await page.goto(`${scene.gateway.admin}/ui/services`);
  await isQuiet(page);
  await page.getByRole("button", { name: "Actions of a" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("checkbox", { name: "Delete dependent objects too" }).check();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Service a deleted").waitFor();
  expect([await names("services"), await names("routes")]).toEqual([
    ["b", "c"],
    ["b", "c"],
  ]);
  await undone();
  expect([await names("services"), await names("routes")]).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
  await page.getByRole("link", { name: "a", exact: true }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("an object that changed since stays, and the message says why", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/routes",
    expects: [409],
  });
  await page.getByRole("switch", { name: "Enable c" }).click();
  await page.getByText("Route c disabled").waitFor();
  const path = "/api/v1/routes/c";
  await scene.gateway.api("PATCH", path, { description: "changed by the admin" }, root);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText(/cannot be undone: route "c" has changed since/).waitFor();
  const answer = await scene.gateway.api("GET", path, undefined, root);
  expect(await answer.json()).toMatchObject({
    enabled: false,
    description: "changed by the admin",
  });
  expect(complaints).toEqual([]);
  await close();
});

test("a switch that another user was faster to press never undoes the change of that user", async () => {
  const { page, close } = await scene.openAs("editor", { path: "/ui/routes" });
  // The page no longer learns of changes.
  await page.route("**/api/v1/events*", (route) => route.abort());
  await page.reload();
  await isQuiet(page);
  await scene.gateway.api("PATCH", "/api/v1/routes/b", { enabled: false }, root);
  await page.getByRole("switch", { name: "Enable b" }).click();
  await page.getByText("Route b disabled").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText(/is a change of admin@ui.example: only they may undo it/).waitFor();
  expect(await names("routes")).toContain("b off");
  await close();
});

test("users stay deleted: their notification offers no undo", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/users" });
  const name = emailOf("viewer");
  await page.getByRole("button", { name: /^Actions of .*viewer/ }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText(/^User .* deleted$/).waitFor();
  expect(await page.getByRole("button", { name: "Undo" }).count()).toBe(0);
  expect(await page.getByText(name).count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});

test("a revision of another user has no button, and says why", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/routes" });
  await page.getByRole("switch", { name: "Enable a" }).click();
  await page.getByText("Route a disabled").waitFor();
  const newest = async () => {
    const answer = await scene.gateway.api("GET", "/api/v1/revisions", undefined, root);
    return ((await answer.json()) as { number: number }[]).at(-1)?.number;
  };
  const button = page.getByRole("button", { name: "Undo this change" });
  await page.goto(`${scene.gateway.admin}/ui/revisions/${await newest()}`);
  await button.waitFor();
  await scene.gateway.api("PATCH", "/api/v1/routes/b", { description: "of the admin" }, root);
  await page.goto(`${scene.gateway.admin}/ui/revisions/${await newest()}`);
  await page.getByText(/not possible: .* is a change of admin@ui.example/).waitFor();
  expect(await button.count()).toBe(0);
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});
