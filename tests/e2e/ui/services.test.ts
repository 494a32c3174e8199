// Services in the browser: creation with targets, live health, weights, draining, overrides, every option saved.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;
let root: { cookie: string };

beforeAll(async () => {
  origin = scene.serve(() => new Response("here"));
  await scene.createPeople();
  root = await scene.cookieOf("admin");
});

// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
async function api(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await scene.gateway.api(method, `/api/v1${path}`, body, root);
  return await answer.json();
}

test("a service with two targets is created, and changes of its targets apply at once", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    // The form was opened with an older version and detects that by itself.
    path: "/ui/services/new",
    expects: [412],
  });
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("web");
  await page.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.1");
  await page.getByRole("textbox", { name: "Port" }).fill(String(origin.port));
  await page.getByRole("button", { name: "Add a target" }).click();
  const second = page.getByRole("group", { name: "Target 2" });
  await second.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.2");
  await second.getByRole("textbox", { name: "Port" }).fill("9");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Service web created").waitFor();
  const one = page.getByRole("article", { name: `Target 127.0.0.1:${origin.port}` });
  const other = page.getByRole("article", { name: "Target 127.0.0.2:9" });
  await one.getByText("50 %").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "service");

  const weightOf = async (host: string): Promise<number> =>
    (await api("GET", "/targets")).find((target: { host: string }) => target.host === host).weight;
  await other.getByRole("slider").focus();
  await page.keyboard.press("ArrowRight");
  await eventually(async () => (await weightOf("127.0.0.2")) === 105);
  await page.getByText("Target 127.0.0.2:9 has weight 105").waitFor();

  await other.getByRole("button", { name: "Actions of 127.0.0.2:9" }).click();
  await page.getByRole("menuitem", { name: "Drain: no new requests" }).click();
  await other.getByText("draining").waitFor();
  expect(await weightOf("127.0.0.2")).toBe(0);
  await other.getByRole("button", { name: "Actions of 127.0.0.2:9" }).click();
  await page.getByRole("menuitem", { name: "End draining" }).click();
  await page.getByText("Target 127.0.0.2:9 has weight 100").waitFor();

  await other.getByRole("button", { name: "Actions of 127.0.0.2:9" }).click();
  await page.getByRole("menuitem", { name: "Unhealthy for an hour" }).click();
  await other.getByText("unhealthy", { exact: true }).waitFor();
  await other.getByText(/set by a user/).waitFor();
  await other.getByRole("button", { name: "Actions of 127.0.0.2:9" }).click();
  await page.getByRole("menuitem", { name: "Clear the override" }).click();
  await other.getByText("unknown", { exact: true }).waitFor();

  // The page's own changes of targets are no conflict for the rest of the form.
  await page.getByRole("button", { name: /^Retries/ }).click();
  await page.getByRole("textbox", { name: "Retries" }).fill("4");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Service web saved").waitFor();
  const { retries, targets } = await api("GET", "/services/web");
  expect([retries.count, targets.length]).toEqual([4, 2]);
  expect(complaints).toEqual([]);
  await close();
});

test("health is shown as it changes, in the list and on the page", async () => {
  const { id, targets } = await api("GET", "/services/web");
  const list = await scene.openAs("viewer", { path: "/ui/services" });
  const one = await scene.openAs("viewer", { path: `/ui/services/${id}` });
  const row = list.page.getByRole("row", { name: /web/ });
  await row.getByText("unknown").waitFor();
  for (const target of targets)
    await api("PUT", `/targets/${target.id}/health`, { state: "healthy" });
  await row.getByText("healthy", { exact: true }).waitFor();
  await one.page.getByRole("article").first().getByText("healthy", { exact: true }).waitFor();
  await api("PUT", `/targets/${targets[0].id}/health`, { state: "unhealthy" });
  await row.getByText("degraded").waitFor();
  await one.page.getByRole("article").first().getByText("unhealthy", { exact: true }).waitFor();
  expect(await one.page.getByRole("slider").count()).toBe(0);
  expect(await one.page.getByRole("button", { name: /^Actions of/ }).count()).toBe(0);
  expect([list.complaints, one.complaints]).toEqual([[], []]);
  await list.close();
  await one.close();
});

test("every option of a service has a field, which shows its errors", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/services/new",
    expects: [400],
  });
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("api");
  await page.getByRole("combobox", { name: "Protocol" }).click();
  await page.getByRole("option", { name: /^HTTPS/ }).click();
  await page.getByRole("switch", { name: "Verify the target's certificate" }).click();
  await page.getByLabel("Server name (SNI)").fill("api.internal");
  await page.getByRole("combobox", { name: "Algorithm" }).click();
  await page.getByRole("option", { name: "Consistent hashing" }).click();
  await page.getByRole("switch", { name: "Sticky sessions" }).click();
  await page.getByLabel("Cookie name").fill("side");
  await page.getByRole("button", { name: /^Health checks/ }).click();
  await page.getByRole("switch", { name: "Active health checks" }).click();
  const path = page.getByLabel("Request path");
  await path.fill("healthz");
  await page.getByText("Must start with /").waitFor();
  await path.fill("/healthz");
  await page.getByRole("button", { name: /^Connections/ }).click();
  await page.getByRole("textbox", { name: "Concurrent requests per target" }).fill("50");
  await page.getByRole("textbox", { name: "Host", exact: true }).fill("api.internal");
  await page.getByRole("button", { name: "Create" }).click();
  const port = page.getByRole("textbox", { name: "Port" }).first();
  await port.and(page.locator("[aria-invalid=true]")).waitFor();
  await port.fill("443");
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Service api created").waitFor();
  expect(await api("GET", "/services/api")).toMatchObject({
    protocol: "https",
    algorithm: "consistent_hash",
    sticky: { enabled: true, cookie: "side" },
    tls: { verify: false, server_name: "api.internal" },
    health: { active: { enabled: true, path: "/healthz" } },
    max_connections_per_target: 50,
  });
  expect(complaints).toEqual([]);
  await close();
});
