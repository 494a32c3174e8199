// Recent requests of a running gateway: the facts of each, limits and filters, and that no secret is among it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { freePort } from "../../support/data-plane.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { Canaries } from "../security/canaries.ts";

let gateway: Gateway;
let origin: Origin;

beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
  origin = startOrigin({
    answer: ({ target }) =>
      target.includes("hang up")
        ? "close"
        : `HTTP/1.1 ${target.startsWith("/a/404") ? "404 No" : "200 OK"}\r\nContent-Length: 5\r\n\r\nhello`,
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "shop",
    protocol: "http",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "a", service_id: "shop", paths: ["/a"] });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop();
});

const send = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, init);
  await response.text();
  return response;
};
// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
const list = (query = ""): Promise<any[]> => gateway.ok("GET", `/api/v1/requests${query}`);
/** There as soon as the worker has ended it, which may be a moment after the answer. */
// biome-ignore lint/suspicious/noExplicitAny: as above
const find = (q: string): Promise<any> => eventually(async () => (await list(`?q=${q}`))[0]);

test("a request has all known facts", async () => {
  await send("/a/full?page=2", {
    method: "POST",
    body: "1234567",
    headers: { "user-agent": "curious/1.0" },
  });
  const found = await find("/a/full");
  expect(found).toMatchObject({
    kind: "http",
    client: "127.0.0.1",
    method: "POST",
    scheme: "http",
    host: "127.0.0.1",
    path: "/a/full?page=2",
    status: 200,
    route: { name: "a" },
    service: { name: "shop" },
    target: { address: `127.0.0.1:${origin.port}` },
    consumer: null,
    attempts: 1,
    bytes_in: 7,
    bytes_out: 5,
    reasons: [],
    tls_version: null,
    http_version: "1.1",
    user_agent: "curious/1.0",
    truncated: [],
  });
  expect(Math.abs(Date.parse(found.time) - Date.now())).toBeLessThan(60_000);
  const { queue, connect, first_byte, total } = found.timings;
  expect(queue).toBe(0);
  expect(connect).toBeGreaterThanOrEqual(0);
  expect(first_byte).toBeGreaterThan(0);
  expect(total).toBeGreaterThanOrEqual(first_byte);
  expect(await gateway.ok("GET", `/api/v1/requests/${found.id}`)).toEqual(found);
});

test("a request without a route, and one whose target did not respond, have a reason", async () => {
  expect((await send("/none")).status).toBe(404);
  expect(await find("/none")).toMatchObject({
    status: 404,
    route: null,
    service: null,
    target: null,
    attempts: 0,
    reasons: ["destination_not_found"],
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "down",
    retries: { backoff_ms: 0 },
    targets: [
      { host: "127.0.0.1", port: freePort() },
      { host: "127.0.0.1", port: freePort() },
    ],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "d", service_id: "down", paths: ["/down"] });
  const answer = await send("/down");
  const failed = await find("/down");
  expect(failed).toMatchObject({ status: answer.status, route: { name: "d" }, attempts: 2 });
  expect(failed.reasons).toContain("connection_refused");
});

test("an error page and the list show the same id for a request", async () => {
  const response = await send("/named-nothing", { headers: { accept: "application/json" } });
  const id = response.headers.get("x-request-id");
  const found = await find("/named-nothing");
  if (id !== null) expect(found.id).toBe(id);
  expect((await gateway.api("GET", `/api/v1/requests/${found.id}`)).status).toBe(200);
});

describe("limit", () => {
  test.each([
    ["", 200],
    ["?limit=1", 200],
    ["?limit=500", 200],
    ["?limit=007", 200],
    ["?limit=0", 400],
    ["?limit=501", 400],
    ["?limit=abc", 400],
    ["?limit=", 400],
    ["?limit=-1", 400],
    ["?limit=1.5", 400],
    ["?limit=1e2", 400],
    ["?limit=+5", 400],
    ["?limit=%205", 400],
    ["?limit=9007199254740993", 400],
    ["?limit=1&limit=2", 400],
    ["?Limit=1", 400],
    ["?offset=1", 400],
  ])("%p: %p", async (query, status) => {
    const response = await gateway.api("GET", `/api/v1/requests${query}`);
    expect(response.status).toBe(status);
    if (status === 400) expect(Object.keys((await response.json()) as object)).toEqual(["error"]);
  });

  test("is 100 by default, and the newest come first", async () => {
    for (let sent = 0; sent < 120; sent++) await send(`/a/many?n=${sent}`);
    await find("n=119");
    expect((await list()).length).toBe(100);
    const [first, second] = await list("?limit=2&q=/a/many");
    expect([first.path, second.path]).toEqual(["/a/many?n=119", "/a/many?n=118"]);
    expect((await list("?limit=120&q=/a/many")).length).toBe(120);
  });
});

test("filters are combined, and an invalid one is refused by name", async () => {
  await send("/a/404");
  await find("/a/404");
  expect(
    (await list("?status=4xx&route=a&host=127.0.0.1&address=127.0.0.0/8&q=/a/404")).length,
  ).toBe(1);
  expect(await list("?status=5xx&q=/a/404")).toEqual([]);
  expect(await list("?service=nothing")).toEqual([]);
  const refused = await gateway.api("GET", "/api/v1/requests?status=abc");
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("status: ");
  expect(
    (await gateway.api("GET", "/api/v1/requests/01a1fd89-78aa-7153-806c-000000000015")).status,
  ).toBe(404);
});

test("a connection of a stream route is listed after it ends, and counted", async () => {
  const echo = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket, chunk) => void socket.write(chunk) },
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "echo",
    protocol: "tcp",
    targets: [{ host: "127.0.0.1", port: echo.port }],
  });
  const port = freePort();
  await gateway.ok("POST", "/api/v1/stream-routes", {
    name: "echo-stream",
    listen_address: "127.0.0.1",
    listen_port: port,
    service_id: "echo",
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  const client = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data: () => resolve(), open: (socket) => void socket.write("12345") },
  });
  await promise;
  client.end();
  const [found] = await eventually(async () => {
    const streams = await list("?kind=stream&route=echo-stream");
    return streams.length > 0 ? streams : null;
  });
  expect(found).toMatchObject({
    kind: "stream",
    scheme: "tcp",
    status: null,
    path: null,
    client: "127.0.0.1",
    route: { name: "echo-stream" },
    service: { name: "echo" },
    target: { address: `127.0.0.1:${echo.port}` },
    bytes_in: 5,
    bytes_out: 5,
  });
  expect(await gateway.ok("GET", `/api/v1/requests/${found.id}`)).toEqual(found);
  const metrics = await (await gateway.api("GET", "/metrics")).text();
  expect(metrics).toContain(
    'sluice_stream_connections_total{stream_route="echo-stream",service="echo"} 1',
  );
  expect(metrics).toContain(
    'sluice_stream_bytes_total{stream_route="echo-stream",service="echo",direction="in"} 5',
  );
  echo.stop(true);
});

test("secrets in queries appear neither in the list, nor in a search, nor in metrics", async () => {
  const canaries = new Canaries();
  const names = [
    "token",
    "access_token",
    "api_key",
    "password",
    "code",
    "client_secret",
    "X-Amz-Signature",
  ];
  for (const name of names) {
    const canary = canaries.make(name);
    await send(`/a/canary?${name}=${canary}&then=1`);
    await send(`/a/canary?to=${encodeURIComponent(`https://x.example/?${name}=${canary}`)}`);
    await send(`/canary-nowhere?a[${name}]=${canary}`);
    expect(await list(`?q=${canary}`)).toEqual([]);
  }
  await eventually(async () => (await list("?q=canary&limit=500")).length === 3 * names.length);
  const places = { list: "/api/v1/requests?limit=500", metrics: "/metrics" };
  for (const [place, path] of Object.entries(places)) {
    const text = await (await gateway.api("GET", path)).text();
    expect(canaries.traces(place, text)).toEqual([]);
  }
  const [found] = await list("?q=then=1");
  expect(found.path).toMatch(/^\/a\/canary\?[A-Za-z_-]+=\*\*\*&then=1$/);
});

test("the number of stored requests can be changed, also to none, and what fits stays", async () => {
  await send("/a/kept");
  const kept = await find("/a/kept");
  await gateway.ok("PATCH", "/api/v1/settings", { retention: { requests: 10 } });
  expect(await gateway.ok("GET", `/api/v1/requests/${kept.id}`)).toEqual(kept);
  for (let sent = 0; sent < 25; sent++) await send(`/a/after?n=${sent}`);
  await find("n=24");
  const after = await list("?limit=500");
  expect(after.length).toBe(10);
  expect(after[0].path).toBe("/a/after?n=24");
  await gateway.ok("PATCH", "/api/v1/settings", { retention: { requests: 0 } });
  await send("/a/unseen");
  expect(await list()).toEqual([]);
  await gateway.ok("PATCH", "/api/v1/settings", { retention: { requests: 10_000 } });
  await send("/a/seen");
  expect((await find("/a/seen")).path).toBe("/a/seen");
});

test("a request that waited in a queue shows for how long", async () => {
  const held = Promise.withResolvers<void>();
  const slow = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (request.url.endsWith("/first")) await held.promise;
      return new Response("ok");
    },
  });
  const targets = [{ host: "127.0.0.1", port: slow.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "slow", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "q", service_id: "slow", paths: ["/q"] });
  const config = { max: 1, queue: 1, queue_timeout: 60_000 };
  const plugin = { name: "concurrency-limit", route_id: "q", config };
  await gateway.ok("POST", "/api/v1/plugins", plugin);
  const first = send("/q/first");
  await eventually(() => slow.pendingRequests === 1);
  // One of them finds the queue full as soon as the other one waits.
  const others = [send("/q/second"), send("/q/second")];
  expect((await Promise.race(others)).status).toBe(503);
  held.resolve();
  await Promise.all([first, ...others]);
  const all = await eventually(async () => {
    const found = await list("?q=/q/second");
    return found.length === 2 ? found : null;
  });
  const { timings } = all.find(({ status }) => status === 200);
  expect(timings.queue).toBeGreaterThan(0);
  expect(timings.plugins).toBeGreaterThanOrEqual(timings.queue);
  expect(all.find(({ status }) => status === 503).timings.queue).toBe(0);
  expect((await find("/q/first")).timings.queue).toBe(0);
  await slow.stop(true);
});
