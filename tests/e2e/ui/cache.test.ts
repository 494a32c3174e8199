// Caching in a browser: what the cache did for a request and why, and its hit ratio by route.
import { expect } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { quickGet } from "../../support/quick-http.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;

beforeAll(async () => {
  origin = scene.serve(
    (request) =>
      new Response("x".repeat(1000), {
        headers: {
          "Cache-Control": "max-age=60",
          ...(request.url.endsWith("/cookie") ? { "Set-Cookie": "a=b" } : {}),
        },
      }),
  );
  const { gateway } = scene;
  const target = { host: "127.0.0.1", port: origin.port };
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets: [target] });
  for (const name of ["cached", "plain"])
    await gateway.ok("POST", "/api/v1/routes", {
      name,
      hosts: [`${name}.test`],
      service_id: "web",
    });
  await gateway.ok("POST", "/api/v1/plugins", { name: "response-cache", route_id: "cached" });
  await scene.createPeople();
});

const get = (host: string, path: string) => quickGet(scene.gateway.httpPort, { host, path });

test("a request shows what the cache did and why; the list filters by it", async () => {
  await get("plain.test", "/page");
  await get("cached.test", "/cookie");
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/requests" });
  await page.getByRole("button", { name: "GET cached.test/cookie" }).click();
  const cache = page.getByRole("dialog").getByRole("region", { name: "Cache" });
  await cache.getByText(/The response was not stored\. The response sets a cookie\./).waitFor();
  await cache.getByText("set_cookie", { exact: true }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "requests-cache");
  await cache.getByRole("link", { name: "Filter by this" }).last().click();
  await eventually(() => new URL(page.url()).search === "?cache=set_cookie");
  const rows = page.locator("tr.request-row");
  await eventually(async () => (await rows.count()) === 1);
  await page.getByRole("combobox", { name: "Cache" }).click();
  await page.getByRole("option", { name: "miss" }).click();
  await eventually(() => new URL(page.url()).search === "?cache=miss");
  await eventually(async () => (await rows.count()) === 1);
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await page.getByRole("button", { name: "GET plain.test/page" }).click();
  await page.getByRole("dialog").getByRole("region", { name: "Outcome" }).waitFor();
  expect(await cache.count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});

test("the dashboard and the page of a route show the hit ratio and the bytes from the cache", async () => {
  const { page, complaints, close } = await scene.openAs("viewer");
  // Workers do not share what they store: ask until most are hits.
  for (let sent = 0; sent < 40; sent++) await get("cached.test", "/page");
  await page.goto(`${scene.gateway.admin}/`);
  await isQuiet(page);
  const busiest = page.getByRole("table", { name: "Top traffic" });
  const { now } = await page.evaluate(async () => await (await fetch("/api/v1/stats")).json());
  const found = now.by_route.find(({ name }: { readonly name: string }) => name === "cached");
  expect(found.cache_hits).toBeGreaterThan(30);
  const percent = `${Math.round(found.cache_hit_ratio * 100)} %`;
  const bytes = `${(found.cache_bytes / 1000).toFixed(1)} KB`;
  const row = busiest.getByRole("row").filter({ hasText: "cached" });
  expect(await row.textContent()).toContain(`${percent} cache hits, ${bytes}`);
  expect(await busiest.getByRole("row").filter({ hasText: "plain" }).textContent()).not.toContain(
    "cache hits",
  );
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "dashboard-cache");
  await busiest.getByRole("link", { name: "cached" }).click();
  const section = page.getByRole("region", { name: "Cache" });
  await section.getByText(`${percent} of ${found.cache_lookups} lookups`).waitFor();
  await section.getByText(bytes).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "route-cache");
  await section.getByRole("link", { name: "Show recent misses" }).click();
  await eventually(() => new URL(page.url()).searchParams.get("cache") === "miss");
  await page.getByRole("button", { name: "GET cached.test/page" }).first().waitFor();
  await page.goto(`${scene.gateway.admin}/ui/routes`);
  await page.getByRole("link", { name: "plain", exact: true }).click();
  await page.getByRole("region", { name: "Plugins" }).waitFor();
  await isQuiet(page);
  expect(await page.getByRole("region", { name: "Cache" }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});
