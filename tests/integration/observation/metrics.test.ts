// Metrics of a running gateway: exact, readable by strict readers, open to all clients, without the names of objects deleted long ago.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";

const WORKERS = 4;
let gateway: Gateway;
let origin: Origin;

beforeAll(async () => {
  gateway = await startGateway({ workers: WORKERS });
  origin = startOrigin({
    answer: ({ target }) => {
      const status = target.includes("bad") ? "503 No" : "200 OK";
      return `HTTP/1.1 ${status}\r\nContent-Length: 5\r\n\r\nhello`;
    },
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "shop",
    protocol: "http",
    retries: { count: 0 },
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "a", service_id: "shop", paths: ["/a"] });
  await gateway.ok("POST", "/api/v1/routes", { name: "b", service_id: "shop", paths: ["/b"] });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop();
});

const get = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    ...init,
    keepalive: false,
  });
  await response.text();
  return response.status;
};

async function scrape(format: "prometheus" | "openmetrics" = "prometheus") {
  const accept = format === "openmetrics" ? "application/openmetrics-text;version=1.0.0" : "*/*";
  const response = await fetch(`${gateway.admin}/metrics`, { headers: { accept } });
  expect(response.status).toBe(200);
  return readMetrics(await response.text(), format);
}

test("the totals equal the requests that were sent, over 4 workers", async () => {
  const before = await scrape();
  const counted = (metrics: typeof before, labels = {}) =>
    metrics.sum("sluice_requests_total", labels) - before.sum("sluice_requests_total", labels);
  const send = async (path: string, count: number, init: RequestInit = {}) => {
    const statuses = new Map<number, number>();
    for (let sent = 0; sent < count; sent += 20) {
      const batch = Array.from({ length: Math.min(20, count - sent) }, () => get(path, init));
      for (const status of await Promise.all(batch))
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    return statuses;
  };
  expect([...(await send("/a/x", 400))]).toEqual([[200, 400]]);
  expect([...(await send("/b", 200, { method: "POST", body: "1234567" }))]).toEqual([[200, 200]]);
  expect([...(await send("/b/bad", 3))]).toEqual([[503, 3]]);
  expect([...(await send("/nothing", 50))]).toEqual([[404, 50]]);
  const after = await eventually(async () => {
    const metrics = await scrape();
    return counted(metrics) >= 653 ? metrics : null;
  });
  expect(counted(after)).toBe(653);
  expect(counted(after, { route: "a", service: "shop", code: "200" })).toBe(400);
  expect(counted(after, { route: "b", code: "200" })).toBe(200);
  expect(counted(after, { route: "b", code: "503" })).toBe(3);
  expect(counted(after, { route: "_none", code: "404" })).toBe(50);
  expect(after.sum("sluice_request_duration_seconds_count", { service: "shop" })).toBe(603);
  expect(after.sum("sluice_upstream_duration_seconds_count", { service: "shop" })).toBe(603);
  expect(after.sum("sluice_gateway_overhead_seconds_count", { service: "shop" })).toBe(603);
  expect(after.sum("sluice_request_body_bytes_total", { route: "b" })).toBe(200 * 7);
  expect(after.sum("sluice_response_body_bytes_total", { service: "shop" })).toBe(603 * 5);
});

test("unparsable requests are counted, too", async () => {
  const before = (await scrape()).sum("sluice_requests_total", { code: "400" });
  const client = await connectRaw({ port: gateway.httpPort });
  client.write("GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
  await client.until("400");
  client.close();
  await eventually(
    async () => (await scrape()).sum("sluice_requests_total", { code: "400" }) > before,
  );
});

test.each(["prometheus", "openmetrics"] as const)("%s is readable and complete", async (format) => {
  await get("/a");
  const { families, sum } = await scrape(format);
  const suffix = format === "openmetrics" ? "" : "_total";
  for (const name of [
    `sluice_requests${suffix}`,
    "sluice_request_duration_seconds",
    "sluice_upstream_duration_seconds",
    "sluice_gateway_overhead_seconds",
    `sluice_retries${suffix}`,
    "sluice_requests_in_flight",
    "sluice_websockets_open",
    "sluice_target_up",
    `sluice_target_ejections${suffix}`,
    "sluice_config_revision",
    "sluice_config_apply_seconds",
    "sluice_worker_ready",
    `sluice_worker_restarts${suffix}`,
    "sluice_build_info",
    `sluice_process_cpu_seconds${suffix}`,
    "sluice_process_resident_memory_bytes",
    "sluice_process_start_time_seconds",
    "sluice_process_open_fds",
  ])
    expect([name, families.has(name)]).toEqual([name, true]);
  expect(sum("sluice_worker_ready")).toBe(WORKERS);
  expect(sum("sluice_target_up", { service: "shop", target: `127.0.0.1:${origin.port}` })).toBe(1);
});

describe("the format", () => {
  test.each([
    ["", "text/plain; version=0.0.4; charset=utf-8"],
    ["*/*", "text/plain; version=0.0.4; charset=utf-8"],
    ["text/plain", "text/plain; version=0.0.4; charset=utf-8"],
    ["application/openmetrics-text; q=0, text/plain", "text/plain; version=0.0.4; charset=utf-8"],
    [
      "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2",
      "text/plain; version=0.0.4; charset=utf-8",
    ],
    [
      "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
      "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ],
  ])("for Accept %p is %p", async (accept, type) => {
    const response = await fetch(`${gateway.admin}/metrics`, { headers: { accept } });
    expect(response.headers.get("content-type")).toBe(type);
  });
});

test("a deleted route stays under its name for a while; a new one of that name is not counted twice", async () => {
  const make = () =>
    gateway.ok("POST", "/api/v1/routes", { name: "brief", service_id: "shop", paths: ["/brief"] });
  await make();
  await get("/brief");
  await get("/brief");
  await gateway.ok("DELETE", "/api/v1/routes/brief");
  expect(await get("/brief")).toBe(404);
  const gone = await scrape();
  expect(gone.sum("sluice_requests_total", { route: "brief" })).toBe(2);
  await make();
  await get("/brief");
  // Counted a moment after the response.
  await eventually(async () => {
    const count = (await scrape()).sum("sluice_requests_total", { route: "brief" });
    expect(count).toBeLessThanOrEqual(3);
    return count === 3;
  });
});

test("names that users choose cannot break the text", async () => {
  const host = "xn--bcher-kva.example";
  await gateway.ok("POST", "/api/v1/services", { name: "a b.c~d", targets: [{ host, port: 1 }] });
  const { sum } = await scrape();
  expect(sum("sluice_target_up", { service: "a b.c~d", target: `${host}:1` })).toBe(1);
});

test("the list needs no credentials, and accepts only GET and HEAD", async () => {
  await gateway.ok("POST", "/api/v1/users", {
    email: "admin@a.example",
    name: "A",
    role: "admin",
    password: "correct horse battery",
  });
  expect((await fetch(`${gateway.admin}/api/v1/requests`)).status).toBe(401);
  expect((await fetch(`${gateway.admin}/metrics`)).status).toBe(200);
  expect((await fetch(`${gateway.admin}/metrics`, { method: "HEAD" })).status).toBe(200);
  expect((await fetch(`${gateway.admin}/metrics`, { method: "POST" })).status).toBe(405);
});
