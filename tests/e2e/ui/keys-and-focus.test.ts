// What a person does without looking: keys at once, Back, the next step, undo of an older change, many candidates.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { isQuiet, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

const ROUTES = 13;
/** The revision in which the editor moved route 1. */
let moved = 0;

beforeAll(async () => {
  const { gateway } = scene;
  await gateway.ok("POST", "/api/v1/services", { name: "web" });
  for (let each = 1; each <= ROUTES; each++)
    await gateway.ok("POST", "/api/v1/routes", {
      name: `shop ${each}`,
      service_id: "web",
      hosts: ["shop.test"],
      paths: [{ type: "prefix", value: `/part-${each}` }],
    });
  await scene.createPeople();
  moved = await patch("shop 1", { hosts: ["moved.test"] });
  await patch("shop 2", { description: "later" });
});

/** As the editor; returns the revision. */
async function patch(name: string, fields: object): Promise<number> {
  const headers = await scene.cookieOf("editor");
  const path = `/api/v1/routes/${name}`;
  const response = await scene.gateway.api("PATCH", path, fields, headers);
  expect(response.status).toBe(200);
  return Number(response.headers.get("x-config-revision"));
}

test("Ctrl+K takes every key, also those before its input is there", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/services" });
  await page.keyboard.press("Control+k");
  await page.keyboard.type("stream routes");
  const input = page.getByRole("combobox", { name: "Search pages, objects and actions" });
  await eventually(async () => (await input.inputValue()) === "stream routes");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Stream routes", level: 1 }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("Back asks when something is not saved", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/services" });
  await page.getByRole("link", { name: "New service" }).click();
  const name = page.getByRole("textbox", { name: "Name", exact: true });
  await name.fill("half done");
  await page.evaluate("history.back()");
  const dialog = page.getByRole("dialog", { name: "Leave without saving?" });
  await dialog.getByRole("button", { name: "Stay" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await name.inputValue()).toBe("half done");
  expect(new URL(page.url()).pathname).toBe("/ui/services/new");
  await page.evaluate("history.back()");
  await dialog.getByRole("button", { name: "Leave" }).click();
  await page.getByRole("heading", { name: "Services", level: 1, exact: true }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("each step of the wizard begins with the focus at its heading", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/applications/new",
  });
  const next = page.getByRole("button", { name: "Next" });
  const focused = () =>
    page.evaluate(`[document.activeElement.tagName, document.activeElement.textContent].join(" ")`);
  await page.getByRole("textbox", { name: "Domain", exact: true }).fill("wiki.test");
  await next.click();
  await eventually(async () => (await focused()) === "H2 Upstream");
  await page.getByRole("textbox", { name: "Upstream URL" }).fill("http://127.0.0.1:9");
  await next.click();
  await eventually(async () => (await focused()) === "H2 HTTPS");
  await next.click();
  await eventually(async () => (await focused()) === "H2 Preview");
  await page.getByRole("button", { name: "Back" }).click();
  await eventually(async () => (await focused()) === "H2 HTTPS");
  expect(complaints).toEqual([]);
  await close();
});

test("a request test shows the ten closest routes, and more on request", async () => {
  const url = encodeURIComponent("http://shop.test/none");
  const { page, complaints, close } = await scene.openAs("viewer", {
    path: `/ui/routes/test?url=${url}`,
  });
  const rows = page.getByRole("list", { name: "Candidate routes" }).getByRole("listitem");
  await rows.first().waitFor();
  expect(await rows.count()).toBe(10);
  await page.getByRole("button", { name: /^Show \d+ more$/ }).click();
  expect(await rows.count()).toBeGreaterThanOrEqual(ROUTES - 1);
  expect(complaints).toEqual([]);
  await close();
});

test("the page of a revision undoes its change and keeps later ones", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: `/ui/revisions/${moved}`,
  });
  await isQuiet(page);
  const route = async (name: string) => {
    const headers = await scene.cookieOf("editor");
    const response = await scene.gateway.api("GET", `/api/v1/routes/${name}`, undefined, headers);
    return (await response.json()) as { hosts: string[]; description: string };
  };
  expect((await route("shop 1")).hosts).toEqual(["moved.test"]);
  await page.getByRole("button", { name: "Undo this change" }).click();
  const dialog = page.getByRole("dialog", { name: `Undo revision ${moved}?` });
  await dialog.getByRole("button", { name: "Undo this change" }).click();
  await eventually(async () => (await route("shop 1")).hosts[0] === "shop.test");
  expect((await route("shop 2")).description).toBe("later");
  expect(complaints).toEqual([]);
  await close();
});
