// Responses of the gateway by configuration: maintenance, default site.
import { afterEach, expect, test } from "bun:test";

import { cleanupsOf } from "../../support/cleanups.ts";
import { type DataPlaneSketch, startDataPlane } from "../../support/data-plane.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { sendRaw } from "../../support/raw-http.ts";

const cleanUp = cleanupsOf(afterEach);

async function scene(sketch: Omit<DataPlaneSketch, "services">) {
  const origin = startOrigin({ answer: () => reply("from the target") });
  cleanUp.push(() => origin.stop());
  const services = [{ name: "app", targets: [{ port: origin.port }] }];
  const plane = await startDataPlane({ services, ...sketch });
  cleanUp.push(() => plane.stop());
  return plane;
}

test("a route in maintenance returns 503 with Retry-After, and no target gets the request", async () => {
  const plane = await scene({
    routes: [
      {
        name: "all",
        service_id: "app",
        maintenance: { retry_after: 120, html: "", bypass_cidrs: [] },
      },
    ],
  });
  const answer = await fetch(plane.url, { headers: { accept: "text/html" } });
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("120");
  expect(answer.headers.get("content-type")).toContain("text/html");
  const page = await answer.text();
  expect(page).toContain("This site is under maintenance");
  expect(page).toContain('<meta http-equiv="refresh" content="120">');
});

test("a route in maintenance shows its own page, also its size to HEAD", async () => {
  const plane = await scene({
    routes: [
      {
        name: "all",
        service_id: "app",
        maintenance: { retry_after: 1, html: "<h1>back at nine</h1>", bypass_cidrs: [] },
      },
    ],
  });
  expect(await (await fetch(plane.url)).text()).toBe("<h1>back at nine</h1>");
  const head = await fetch(plane.url, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length")]).toEqual([503, "21"]);
});

test("clients that maintenance lets through reach the target", async () => {
  const plane = await scene({
    routes: [
      {
        name: "all",
        service_id: "app",
        maintenance: { retry_after: 1, html: "", bypass_cidrs: ["127.0.0.0/8"] },
      },
    ],
  });
  expect(await (await fetch(plane.url)).text()).toBe("from the target");
});

test.each([
  { action: "404", status: 404, body: "no route matches this request", location: null },
  { action: "html", status: 404, body: "<p>nothing here</p>", location: null },
  { action: "redirect", status: 302, body: "", location: "https://example.com/" },
] as const)("the default site $action responds to requests that no route matches", async (want) => {
  const site = { action: want.action, to: "https://example.com/", html: "<p>nothing here</p>" };
  const plane = await scene({ settings: { default_site: site } });
  const answer = await fetch(plane.url, { redirect: "manual" });
  expect(answer.status).toBe(want.status);
  expect(answer.headers.get("location")).toBe(want.location);
  expect(await answer.text()).toContain(want.body);
});

test("the default site close ends the connection without a byte", async () => {
  const plane = await scene({ settings: { default_site: { action: "close", to: "", html: "" } } });
  const received = await sendRaw("GET / HTTP/1.1\r\nHost: unknown.test\r\n\r\n", {
    port: plane.port,
  });
  expect(received.length).toBe(0);
});
