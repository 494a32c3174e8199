// Bytes of responses without a target and of WebSockets: as many as the client got, in the list and in the metrics.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
const target = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, server) {
    return server.upgrade(request) ? undefined : new Response("no WebSocket");
  },
  websocket: { message: (socket, message) => void socket.send(message) },
});

beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
  await gateway.ok("POST", "/api/v1/services", {
    name: "app",
    targets: [{ host: "127.0.0.1", port: target.port }],
  });
  const route = (name: string, fields: object) =>
    gateway.ok("POST", "/api/v1/routes", {
      name,
      service_id: "app",
      hosts: [`${name}.test`],
      ...fields,
    });
  await route("sockets", {});
  await route("closed", { maintenance: { html: "", retry_after: 5 } });
  await route("page", { maintenance: { html: "<h1>closed</h1>", retry_after: 5 } });
  await route("plugin", {});
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "respond",
    route_id: "plugin",
    config: { status: 200, body: "from a plugin" },
  });
  await gateway.ok("PATCH", "/api/v1/settings", {
    default_site: { action: "html", html: "<h1>nobody</h1>" },
  });
});
afterAll(async () => {
  await gateway?.stop();
  await target.stop(true);
});

// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
const find = (host: string): Promise<any> =>
  eventually(async () => (await gateway.ok("GET", `/api/v1/requests?host=${host}`))[0]);

test.each([
  { host: "closed.test", method: "GET", status: 503 },
  { host: "page.test", method: "GET", status: 503 },
  { host: "plugin.test", method: "GET", status: 200 },
  { host: "nowhere.test", method: "GET", status: 404 },
  { host: "head.nowhere.test", method: "HEAD", status: 404 },
])("of $method to $host", async ({ host, method, status }) => {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, {
    method,
    headers: { host },
  });
  const bytes = (await response.bytes()).length;
  expect(bytes > 0).toBe(method === "GET");
  expect(await find(host)).toMatchObject({ host, status, bytes_in: 0, bytes_out: bytes });
});

test("of a WebSocket, including frame headers", async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}/`, {
    headers: { host: "sockets.test" },
  } as unknown as string[]);
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.onopen = () => socket.send("x".repeat(1000));
  socket.onmessage = () => resolve();
  await promise;
  socket.close();
  const found = await find("sockets.test");
  expect(found.status).toBe(101);
  for (const bytes of [found.bytes_in, found.bytes_out]) {
    expect(bytes).toBeGreaterThan(1000);
    expect(bytes).toBeLessThan(1100);
  }
  const { sum } = readMetrics(await (await gateway.api("GET", "/metrics")).text(), "prometheus");
  expect(sum("sluice_response_body_bytes_total", { route: "sockets" })).toBe(found.bytes_out);
  expect(sum("sluice_request_body_bytes_total", { route: "sockets" })).toBe(found.bytes_in);
});
