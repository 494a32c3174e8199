// Routes in the browser: creation with the match editor, real requests, the route test, and viewers.
import { eventually } from "../../support/poll.ts";
import { expect } from "bun:test";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;

beforeAll(async () => {
  origin = scene.serve(({ url }) => new Response(`asked for ${new URL(url).pathname}`));
  const { gateway } = scene;
  await gateway.ok("POST", "/api/v1/services", {
    name: "web",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "other",
    service_id: "web",
    hosts: ["shop.test"],
    methods: ["DELETE"],
    priority: 5,
  });
  await gateway.ok("POST", "/api/v1/plugins", { name: "request-id" });
  await scene.createPeople();
});

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${scene.gateway.httpPort}${path}`, {
    headers: { host: "shop.test", ...headers },
  });

test("an editor creates a route with conditions, and matching requests reach the target", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/routes/new",
    expects: [400],
  });
  await page.getByText("Catch-all route").waitFor();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("shop");
  await page.getByRole("combobox", { name: "Service" }).click();
  await page.getByRole("option", { name: "web" }).click();

  const hosts = page.getByRole("combobox", { name: "Hosts" });
  await hosts.fill("shop..test");
  await hosts.press("Enter");
  await page.getByText("shop..test is not a host name").waitFor();
  await hosts.press("Backspace");
  // A pasted URL becomes its host.
  await hosts.fill("https://shop.test");
  await hosts.press("Enter");
  await page.getByText("shop.test", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Add a path" }).click();
  await page.getByLabel("Path 1", { exact: true }).fill("/shop");
  await page.getByText("Matches /shop, /shop/ and /shop/anything, but not /shopping.").waitFor();
  const trial = page.getByLabel("Test a path");
  await trial.fill("/shopping");
  await page.getByText("/shopping does not match").waitFor();
  await trial.fill("/shop/cart");
  await page.getByText("/shop/cart matches path 1").waitFor();

  await page.getByRole("button", { name: /^Conditions/ }).click();
  await page.getByRole("button", { name: "Add a header" }).click();
  await page.getByLabel("Headers: name 1").fill("x-beta");
  await page.getByLabel("Headers: value 1").fill("yes");
  await page.getByRole("switch", { name: "Strip the path" }).click();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "route-new");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Route shop created").waitFor();
  await page.getByRole("heading", { name: "shop", level: 1 }).waitFor();
  await page.getByRole("link", { name: "request-id" }).waitFor();

  const taken = await ask("/shop/cart", { "x-beta": "yes" });
  expect([taken.status, await taken.text()]).toEqual([200, "asked for /cart"]);
  expect((await ask("/shop/cart")).status).toBe(404);

  const prefix = page.getByRole("textbox", { name: "Replace the prefix", exact: true });
  await prefix.fill("/store");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText(/cannot be combined with strip_path/).waitFor();
  await page.getByRole("switch", { name: "Strip the path" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Route shop saved").waitFor();
  expect(await (await ask("/shop/cart", { "x-beta": "yes" })).text()).toBe("asked for /store/cart");
  await prefix.fill("");
  await page.getByRole("switch", { name: "Strip the path" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await eventually(
    async () => (await (await ask("/shop/cart", { "x-beta": "yes" })).text()) === "asked for /cart",
  );
  expect(complaints).toEqual([]);
  await close();
});

test("the route test shows the matched route, the candidates and why they lost, the plugins and the target", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", {
    path: "/ui/routes",
    expects: [400],
  });
  await page.getByRole("link", { name: "shop", exact: true }).click();
  await page.getByRole("link", { name: "Test a request" }).click();
  await page.getByRole("heading", { name: "Test a request" }).waitFor();
  await page.getByText("No route matched: the default site responds").waitFor();
  await page.getByText(/^headers\[0\]/).waitFor();

  await page.getByRole("group", { name: "Headers" }).getByRole("button", { name: "Add" }).click();
  await page.getByLabel("Headers: name").fill("x-beta");
  await page.getByLabel("Headers: value").fill("yes");
  await page.getByRole("textbox", { name: "URL", exact: true }).fill("shop.test/shop/cart");
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("Route shop matches and forwards to web").waitFor();
  const candidates = page.getByRole("list", { name: "Candidate routes" });
  const lines = await candidates.getByRole("listitem").allInnerTexts();
  expect(lines.map((line) => line.replaceAll(/\s+/g, " ").trim())).toEqual([
    "1 other no match methods: GET is none of DELETE",
    "2 shop matched",
  ]);
  await page.getByText(`http://127.0.0.1:${origin.port}/cart`, { exact: true }).waitFor();
  await page.getByRole("link", { name: "request-id" }).waitFor();
  await page.getByText("runs", { exact: true }).waitFor();
  expect(new URL(page.url()).searchParams.get("header")).toBe("x-beta: yes");
  await isQuiet(page);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "route-test");

  await page.getByLabel("Client address").fill("nowhere");
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByLabel("Client address").and(page.locator("[aria-invalid=true]")).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("what is typed while a change is saved stays, in a form that creates too", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/routes/new" });
  const name = page.getByRole("textbox", { name: "Name", exact: true });
  const prefix = page.getByRole("textbox", { name: "Replace the prefix", exact: true });
  /** Presses the button, and types while the response is on its way. */
  const typeWhileSaving = async (button: string, typed: string, done: string) => {
    const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(/\/api\/v1\/routes/, async (route) => {
      if (route.request().method() === "GET") return await route.continue();
      const response = await route.fetch();
      held.resolve();
      await release.promise;
      await route.fulfill({ response });
    });
    await page.getByRole("button", { name: button, exact: true }).click();
    await held.promise;
    await prefix.fill(typed);
    release.resolve();
    await page.getByText(done).first().waitFor();
    await page.unroute(/\/api\/v1\/routes/);
    await eventually(async () => (await prefix.inputValue()) === typed);
  };
  const stored = async () => {
    const headers = await scene.cookieOf("editor");
    const response = await scene.gateway.api("GET", "/api/v1/routes/typed", undefined, headers);
    return ((await response.json()) as { prefix_rewrite: string | null }).prefix_rewrite;
  };
  await name.fill("typed");
  await page.getByRole("button", { name: "Add a path" }).click();
  await page.getByLabel("Path 1", { exact: true }).fill("/typed");
  await typeWhileSaving("Create", "/a", "Route typed created");
  await page.getByRole("heading", { name: "typed", level: 1 }).waitFor();
  expect(await stored()).toBeNull();
  await typeWhileSaving("Save", "/b", "Route typed saved");
  expect(await stored()).toBe("/a");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await eventually(async () => (await stored()) === "/b");
  expect(complaints).toEqual([]);
  await close();
});

test("an API error is shown at its field", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/routes/new",
    expects: [400, 409],
  });
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("shop");
  await page.getByRole("button", { name: /^Conditions/ }).click();
  const networks = page.getByRole("combobox", { name: "Client networks" });
  await networks.fill("10.0.0.0/99");
  await networks.press("Enter");
  await page.getByRole("button", { name: "Create" }).click();
  await networks.and(page.locator("[aria-invalid=true]")).waitFor();
  await networks.press("Backspace");
  await page.getByRole("button", { name: "Create" }).click();
  const name = page.getByRole("textbox", { name: "Name", exact: true });
  await name.and(page.locator("[aria-invalid=true]")).waitFor();
  expect(await page.getByText(/exists already/).count()).toBeGreaterThan(0);
  expect(complaints).toEqual([]);
  await close();
});

test.each([
  ["routes/00000000-0000-4000-8000-000000000000", "The route does not exist", "Routes"],
  ["acme-accounts/gone", "The ACME account does not exist", "ACME accounts"],
  ["routes/new?from=gone", "The route does not exist", "Routes"],
])(
  "/ui/%s reports that it does not exist, and links back to the list",
  async (path, title, list) => {
    const { page, complaints, close } = await scene.openAs("admin", {
      path: `/ui/${path}`,
      expects: [404],
    });
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    expect(await checkAccessible(page)).toEqual([]);
    expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(0);
    await page.locator("main").getByRole("link", { name: list, exact: true }).click();
    await page.getByRole("heading", { name: list, level: 1, exact: true }).waitFor();
    expect(complaints).toEqual([]);
    await close();
  },
);
