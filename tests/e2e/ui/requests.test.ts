// Requests in a browser: filters in the address, why one ended as it did, streams, and a tail that stays usable under load.
import { expect } from "bun:test";
import { connect } from "node:net";
import type { Page } from "playwright-core";
import { freePort } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { QuickConnection, quickGet } from "../../support/quick-http.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;

beforeAll(async () => {
  origin = scene.serve(
    (request) =>
      new Response("hello", { status: new URL(request.url).pathname === "/broken" ? 500 : 200 }),
  );
  const { gateway } = scene;
  const target = { host: "127.0.0.1", port: origin.port };
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets: [target] });
  for (const name of ["shop", "blog", "guarded"])
    await gateway.ok("POST", "/api/v1/routes", {
      name,
      hosts: [`${name}.test`],
      service_id: "web",
    });
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "ip-restriction",
    route_id: "guarded",
    config: { deny: ["127.0.0.0/8"] },
  });
  await scene.createPeople();
});

const get = (host: string, path = "/") => quickGet(scene.gateway.httpPort, { host, path });
const rowsOf = (page: Page) => page.locator("tr.request-row");
/** `1,234 since you opened this: …` */
const numberIn = (text: string | null, words: string): number =>
  Number(new RegExp(`([\\d,]+) ${words}`).exec(text ?? "")?.[1]?.replaceAll(",", "") ?? 0);

test("requests appear as they end; filters are in the URL and survive a reload", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", {
    path: "/ui/requests",
    expects: [400],
  });
  await page.getByText("No requests yet").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByText("Live", { exact: true }).waitFor();
  await get("shop.test", "/cart?token=abc");
  await get("shop.test", "/broken");
  await get("blog.test");
  await get("nowhere.test");
  await eventually(async () => (await rowsOf(page).count()) === 4);
  await page.getByRole("button", { name: "GET shop.test/cart?token=***" }).waitFor();

  const titles = await page.getByRole("columnheader").allTextContents();
  const methods = rowsOf(page).locator(`td:nth-child(${titles.indexOf("Method") + 1})`);
  expect(await methods.allTextContents()).toEqual(["GET", "GET", "GET", "GET"]);
  expect((await rowsOf(page).first().boundingBox())?.height).toBeLessThan(36);

  await page.getByRole("textbox", { name: "Host" }).fill("shop.test");
  await eventually(async () => (await rowsOf(page).count()) === 2);
  await page.getByRole("combobox", { name: "Status" }).fill("5xx");
  await eventually(async () => (await rowsOf(page).count()) === 1);
  await page.getByRole("heading", { name: "Requests" }).click();
  const { searchParams } = new URL(page.url());
  expect(Object.fromEntries(searchParams)).toEqual({ host: "shop.test", status: "5xx" });
  await page.reload();
  await isQuiet(page);
  await eventually(async () => (await rowsOf(page).count()) === 1);
  expect(await page.getByRole("textbox", { name: "Host" }).inputValue()).toBe("shop.test");
  // New requests that match the filter still arrive.
  await page.getByText("Live", { exact: true }).waitFor();
  await get("shop.test", "/broken");
  await get("blog.test", "/broken");
  await eventually(async () => (await rowsOf(page).count()) === 2);

  await page.getByRole("combobox", { name: "Status" }).fill("often");
  await page
    .getByText(/must be like 200, 5xx or 400-499/)
    .first()
    .waitFor();
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await eventually(async () => (await rowsOf(page).count()) === 6);
  expect(new URL(page.url()).search).toBe("");
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});

test("a request shows which plugin rejected it, why, and its timing", async () => {
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/requests" });
  await page.getByText("Live", { exact: true }).waitFor();
  await get("guarded.test", "/admin?api_key=abc");
  await page.getByRole("button", { name: "GET guarded.test/admin?api_key=***" }).click();
  const drawer = page.getByRole("dialog", { name: "Request" });
  await drawer.getByText("The client's network is denied.").waitFor();
  await drawer.getByText("decided by the plugin ip-restriction").waitFor();
  await drawer.getByText("Total").waitFor();
  expect(await drawer.getByRole("link", { name: "guarded" }).getAttribute("href")).toStartWith(
    "/ui/routes/",
  );
  await drawer.getByRole("button", { name: "Copy as curl" }).waitFor();
  await drawer.getByText(/replace \*\*\* with the secrets/).waitFor();
  expect(await drawer.textContent()).not.toContain("abc");
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "requests-drawer");
  // The URL can be shared.
  const address = page.url();
  await page.keyboard.press("Escape");
  await eventually(() => !page.url().includes("open="));
  await page.goto(address);
  await page.getByRole("dialog").getByText("The client's network is denied.").waitFor();
  // And from it to all that ended for the same reason.
  await page.getByRole("dialog").getByRole("link", { name: "Filter by this" }).first().click();
  await eventually(() => new URL(page.url()).search === "?q=ip.denied");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await eventually(async () => (await rowsOf(page).count()) === 1);
  expect(complaints).toEqual([]);
  await close();
});

test("connections of stream routes are shown as well", async () => {
  const { gateway } = scene;
  const admin = await scene.openAs("admin", { path: "/ui/requests?kind=stream" });
  const port = freePort();
  await admin.page.evaluate(
    async ([service, route]) => {
      for (const [path, body] of [
        ["services", service],
        ["stream-routes", route],
      ] as const) {
        const headers = { "content-type": "application/json" };
        const answer = await fetch(`/api/v1/${path}`, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        });
        if (!answer.ok) throw new Error(await answer.text());
      }
    },
    [
      {
        name: "raw",
        protocol: "tcp",
        targets: [{ host: "127.0.0.1", port: origin.port }],
      },
      { name: "raw-stream", service_id: "raw", listen_address: "127.0.0.1", listen_port: port },
    ] as const,
  );
  await admin.page.getByText("Live", { exact: true }).waitFor();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect(port, "127.0.0.1", () => {
    socket.end("GET / HTTP/1.1\r\nHost: raw\r\nConnection: close\r\n\r\n");
  });
  socket.on("error", reject).on("close", () => resolve());
  socket.resume();
  await promise;
  await admin.page.getByRole("button", { name: "connection" }).click();
  const drawer = admin.page.getByRole("dialog", { name: "Connection" });
  await drawer.getByRole("link", { name: "raw-stream" }).waitFor();
  expect(await drawer.getByRole("button", { name: "Copy as curl" }).count()).toBe(0);
  expect(gateway.stderr).not.toContain('"level":"error"');
  expect(admin.complaints).toEqual([]);
  await admin.close();
});

test("while a thousand requests a second flow, the page samples, counts all and can be paused", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/requests" });
  await page.getByText("Live", { exact: true }).waitFor();
  const load = await startLoad(50);
  await page.getByText(/Sampled: about 1 in \d+ is shown/).waitFor();

  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  const first = await rowsOf(page).first().textContent();
  const counts = page.getByTestId("tail-counts");
  const before = numberIn(await counts.textContent(), "since");
  await eventually(async () => numberIn(await counts.textContent(), "since") > before + 1000);
  expect(await rowsOf(page).first().textContent()).toBe(first);
  await page.getByText(/new buffered/).waitFor();
  // Filters and rows work meanwhile.
  await rowsOf(page).nth(3).getByRole("button").click();
  await page.getByRole("dialog").getByText("Total").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  await eventually(async () => (await rowsOf(page).first().textContent()) !== first);

  const sent = await load.stop();
  expect(sent).toBeGreaterThan(1000);
  // Every request is accounted for: counted, or reported as dropped by the gateway.
  const note = page.getByTestId("tail-note");
  await eventually(
    async () =>
      numberIn(await counts.textContent(), "since") +
        numberIn(await note.textContent(), "not sent") ===
      sent,
  );
  expect(await rowsOf(page).count()).toBeLessThanOrEqual(200);
  expect(complaints).toEqual([]);
  await close();
});

/** Sends about a thousand requests a second, one at a time per connection, until it is stopped; returns how many. */
async function startLoad(connections: number) {
  const open = await Promise.all(
    Array.from({ length: connections }, () => QuickConnection.open(scene.gateway.httpPort)),
  );
  const busy = new Map<QuickConnection, Promise<unknown>>();
  let sent = 0;
  const timer = setInterval(() => {
    for (const connection of open) {
      if (busy.has(connection)) continue;
      sent++;
      const reply = connection
        .get(`/item/${sent}`, sent % 3 === 0 ? "blog.test" : "shop.test")
        .then(() => busy.delete(connection));
      busy.set(connection, reply);
    }
  }, 50);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(busy.values());
      for (const connection of open) connection.close();
      return sent;
    },
  };
}
