// The pages of plugins in a browser: the gallery, the form of every plugin, where an instance applies, the order.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { plugins } from "../../support/plugins.ts";
import { eventually } from "../../support/poll.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  useUi,
  type UiPage,
} from "../../support/ui-scene.ts";

const { beforeAll, describe, scene, test } = useUi({ workers: 1 });

let admin: UiPage;

beforeAll(async () => {
  const targets = [{ host: "127.0.0.1", port: 9 }];
  for (const name of ["shop", "shop-next"])
    await scene.gateway.ok("POST", "/api/v1/services", { name, targets });
  await scene.gateway.ok("POST", "/api/v1/routes", {
    name: "shop route",
    hosts: ["shop.test"],
    service_id: "shop",
  });
  await scene.gateway
    .ok("POST", "/api/v1/stream-routes", {
      name: "database",
      listen_port: 0,
      listen_host: "127.0.0.1",
      service_id: "shop",
    })
    .catch(() => null);
  await scene.createPeople();
  admin = await scene.openAs("admin", { expects: [400], path: "/ui/plugins/new" });
});

const open = async (page: Page, path: string) => {
  await page.goto(`${scene.gateway.admin}/ui/${path}`);
  await isQuiet(page);
};

/** Navigates without a page load, as a link does. */
const follow = async (page: Page, path: string) => {
  await page.evaluate(`history.pushState(null, "", "/ui/${path}")`);
  await isQuiet(page);
};

/** Calls the API with the session of the page. */
async function api(page: Page, method: string, path: string, data?: unknown) {
  const answer = await page.request.fetch(`${scene.gateway.admin}/api/v1/${path}`, {
    method,
    ...(data === undefined ? {} : { data }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a response
  return (await answer.json()) as any;
}

const writeJson = async (page: Page, value: unknown) => {
  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByLabel("Configuration", { exact: true }).fill(JSON.stringify(value));
};

/** Where tags are typed. */
const inputOf = (page: Page, field: string) =>
  page.locator(`[data-field="${field}"] input:not([type="hidden"])`).first();

/** A field of the configuration, and a value that it cannot have. */
function wrongOf(schema: Readonly<Record<string, unknown>>): readonly [string, unknown] {
  // biome-ignore lint/suspicious/noExplicitAny: a schema
  const all = Object.entries(schema["properties"] as Record<string, any>).map(([name, whole]) => {
    const { type, minimum, enum: words } = whole.anyOf?.[0] ?? whole;
    if (words !== undefined) return [1, name, "nonsense"] as const;
    if (type === "integer" || type === "number") return [0, name, (minimum ?? 0) - 1] as const;
    return [type === "string" ? 3 : 2, name, 7] as const;
  });
  const [first] = all.toSorted(([one], [other]) => one - other);
  if (first === undefined) throw new Error("nothing can be set");
  return [first[1], first[2]];
}

test("the gallery groups plugins by purpose and finds them by words", async () => {
  const { page, complaints } = admin;
  for (const title of ["Authentication", "Access", "Traffic", "Content", "Observability"])
    expect(await page.getByRole("region", { name: title, exact: true }).count()).toBe(1);
  expect(await page.locator("a.choice").count()).toBe(plugins.length);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "plugin-gallery");
  await page.getByLabel("Search plugins").fill("api key");
  await eventually(async () => (await page.locator("a.choice").count()) === 1);
  await page.getByRole("link", { name: /key-auth/ }).click();
  await page.getByRole("heading", { name: "New key-auth" }).waitFor();
  expect(complaints).toEqual([]);
});

describe("the form of a plugin opens, shows errors at their fields, and saves valid input", () => {
  test.each(plugins.map(({ name }) => name))("%s", async (name) => {
    const { page, complaints } = admin;
    const { example, schema } = await api(page, "GET", `plugins/schemas/${name}`);
    await follow(page, `plugins/new?plugin=${name}`);
    await page.getByRole("heading", { name: `New ${name}` }).waitFor();
    await page.getByRole("button", { name: "Fill in an example" }).waitFor();

    const [field, wrong] = wrongOf(schema);
    const bad = { ...example, [field]: wrong };
    const { error } = await api(page, "POST", "plugins?dry_run=1", { name, config: bad });
    expect(error).toStartWith(`config.${field}: `);
    await writeJson(page, bad);
    await page.getByRole("tab", { name: "Form" }).click();
    await page.getByRole("button", { name: "Create" }).click();
    const place = page.locator(`[data-field="${field}"]`);
    await place
      .getByText(error.slice(`config.${field}: `.length))
      .first()
      .waitFor();

    const expected = await api(page, "POST", "plugins?dry_run=1", { name, config: example });
    await writeJson(page, example);
    await page.getByRole("tab", { name: "Form" }).click();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText(`Plugin ${name} created`).waitFor();
    await page.waitForURL(/plugins\/[0-9a-f-]{36}$/);
    const id = page.url().split("/").at(-1) ?? "";
    const stored = await api(page, "GET", `plugins/${id}`);
    expect(stored.config).toEqual(expected.config);

    // Opening the form again changes nothing.
    await follow(page, "plugins");
    await page.getByRole("heading", { name: "Plugins", exact: true }).waitFor();
    await follow(page, `plugins/${id}`);
    await page.getByRole("heading", { name, exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await page.getByRole("tab", { name: "JSON" }).click();
    const shown = await page.getByLabel("Configuration", { exact: true }).inputValue();
    expect(JSON.parse(shown)).toEqual(stored.config);
    expect([name, complaints]).toEqual([name, []]);
  });
});

test("a rate limit is configured on a route and runs only when its condition matches", async () => {
  const { page, complaints } = admin;
  await open(page, "plugins/new?plugin=rate-limit");
  await page.getByRole("radio", { name: "Route", exact: true }).click();
  await page.getByRole("button", { name: "Add a limit" }).click();
  await page.getByRole("textbox", { name: "Requests" }).fill("10");
  await page.getByRole("radio", { name: "Only matching requests" }).click();
  await page.getByRole("button", { name: "Add a condition" }).click();
  await page.getByRole("menuitem", { name: /^Method/ }).click();
  await inputOf(page, "method").fill("POST");
  await page.keyboard.press("Enter");
  // The page sends nothing before the user chooses a route.
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Choose a scope.").waitFor();
  await page.getByRole("combobox", { name: "Route" }).click();
  await page.getByRole("option", { name: "shop route" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Plugin rate-limit created").waitFor();
  await page.waitForURL(/plugins\/[0-9a-f-]{36}$/);
  const stored = await api(page, "GET", `plugins/${page.url().split("/").at(-1)}`);
  const route = await api(page, "GET", "routes/shop%20route");
  expect([stored.route_id, stored.service_id, stored.when]).toEqual([
    ...[route.id, null, { method: ["POST"] }],
  ]);
  expect(stored.config.limits[0]).toMatchObject({ requests: 10, window: 60, key: "ip" });
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "plugin-form");
  expect(complaints).toEqual([]);
});

test("the list shows the scope and execution order of each", async () => {
  const { page, complaints } = admin;
  for (const service_id of ["shop", "shop-next"])
    await api(page, "POST", "plugins", { name: "request-id", service_id, config: {} });
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await open(page, "plugins");
  await page.getByRole("link", { name: "shop-next", exact: true }).waitFor();
  // One request loads the names of all objects of a kind, however many rows there are.
  expect(asked.filter((path) => /\/(services|routes)\b/.test(path)).toSorted()).toEqual([
    ...["/api/v1/routes", "/api/v1/services"],
  ]);
  const row = page.getByRole("row").filter({ hasText: "shop route" });
  await row.getByRole("link", { name: "shop route" }).waitFor();
  expect(await row.textContent()).toContain("method");
  await page.getByRole("columnheader", { name: "Order", exact: true }).waitFor();
  expect(await page.locator("tbody").textContent()).toMatch(/1st of \d+.*2nd of \d+, after /s);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "plugins");
  await page.getByRole("button", { name: "Execution order" }).click();
  await page.getByRole("region", { name: "Authentication" }).getByText("key-auth").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
});
