// access-log in the whole product: several workers and one file, rotation under load, the counter of what was lost, flags, streams.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../support/data-plane.ts";
import { type Gateway, startGateway } from "../../../support/gateway.ts";
import { eventually } from "../../../support/poll.ts";
import { quick } from "./log-scene.ts";

const elsewhere = mkdtempSync(join(tmpdir(), "sluice-log-dir-"));
let gateway: Gateway;
let origin: Bun.Server<undefined>;

beforeAll(async () => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  gateway = await startGateway({ workers: 4, args: ["--log-dir", elsewhere] });
  await gateway.ok("POST", "/api/v1/services", {
    name: "web",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
});
afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
  rmSync(elsewhere, { recursive: true, force: true });
});

const create = (config: Record<string, unknown>, own: Record<string, unknown> = {}) =>
  gateway.ok("POST", "/api/v1/plugins", { name: "access-log", config, ...own });

/** Every line of a file and of those that were put aside. */
function linesBelow(folder: string, stem: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(stem))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1));
}

describe("four workers and one file", () => {
  const REQUESTS = 3000;

  test("lose no line and split none during repeated rotation", async () => {
    const { id } = await create({
      sinks: [
        {
          file: {
            path: "load.log",
            rotate_size: 4096,
            keep: 10_000,
            format: "template",
            template: "begin ${request.path} end",
          },
        },
      ],
      queue: { ...quick, max_batch_size: 7 },
    });
    let next = 0;
    const client = async () => {
      while (next < REQUESTS) {
        const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/r${next++}`, {
          keepalive: next % 10 !== 0,
        });
        await response.text();
      }
    };
    await Promise.all(Array.from({ length: 16 }, client));
    const folder = join(gateway.dataDir, "logs");
    const lines = await eventually(() => {
      const found = linesBelow(folder, "load");
      return found.length >= REQUESTS ? found : null;
    });
    expect(lines.length).toBe(REQUESTS);
    expect(new Set(lines).size).toBe(REQUESTS);
    for (const line of lines) expect(line).toMatch(/^begin \/r\d+ end$/);
    expect(readdirSync(folder).filter((name) => name.startsWith("load-")).length).toBeGreaterThan(
      2,
    );
    await gateway.api("DELETE", `/api/v1/plugins/${id}`);
  });
});

test("a file below --log-dir is written, one beside it is refused with 400", async () => {
  const path = join(elsewhere, "own/access.log");
  const refused = await gateway.api("POST", "/api/v1/plugins", {
    name: "access-log",
    config: { sinks: [{ file: { path: "/var/tmp/sluice-no.log" } }] },
  });
  expect(refused.status).toBe(400);
  expect(((await refused.json()) as { error: string }).error).toContain("not below the directory");
  const { id } = await create({ sinks: [{ file: { path } }], queue: quick });
  await fetch(`http://127.0.0.1:${gateway.httpPort}/x`);
  await eventually(() => linesBelow(join(elsewhere, "own"), "access").length === 1);
  await gateway.api("DELETE", `/api/v1/plugins/${id}`);
});

test.each([
  ["no sink", { sinks: [{}] }, "config.sinks[0]: must have exactly one of"],
  ["two in one", { sinks: [{ stdout: {}, file: {} }] }, "config.sinks[0]: must have exactly one"],
  [
    "a way out",
    { sinks: [{ file: { path: "../x" } }] },
    'config.sinks[0].file.path: must not contain ".."',
  ],
  [
    "a folder",
    { sinks: [{ file: { path: "x/" } }] },
    "config.sinks[0].file.path: must name a file",
  ],
  [
    "no template",
    { sinks: [{ stdout: { format: "template" } }] },
    "config.sinks[0].stdout.template: is required",
  ],
  [
    "an unknown variable",
    { sinks: [{ stdout: { format: "template", template: "${x.y}" } }] },
    "config.sinks[0].stdout.template: has the unknown variable ${x.y}",
  ],
  [
    "two lines",
    { sinks: [{ stdout: { format: "template", template: "a\nb" } }] },
    "config.sinks[0].stdout.template: must be one line",
  ],
  [
    "no port",
    { sinks: [{ tcp: { address: "host" } }] },
    "config.sinks[0].tcp.address: must be a host and a port",
  ],
  [
    "a wrong port",
    { sinks: [{ udp: { address: "host:70000" } }] },
    "config.sinks[0].udp.address: must have a port",
  ],
  ["no address", { sinks: [{ http: { url: "ftp://x" } }] }, "config.sinks[0].http.url: must be"],
  [
    "a wrong field",
    { sinks: [{ http: { url: "http://x", headers: { "a b": "c" } } }] },
    "is not a valid header name",
  ],
  [
    "a wrong label",
    { sinks: [{ loki: { url: "http://x", labels: { "a-b": "c" } } }] },
    "config.sinks[0].loki.labels.a-b: must be",
  ],
  [
    "a wrong status",
    { filters: { status: ["6xx"] } },
    "config.filters.status[0]: must be a status",
  ],
  [
    "pauses",
    { queue: { initial_retry_delay: 9, max_retry_delay: 1 } },
    "config.queue.initial_retry_delay",
  ],
])("refuses %s", async (_, config, message) => {
  const response = await gateway.api("POST", "/api/v1/plugins", { name: "access-log", config });
  expect(response.status).toBe(400);
  expect(((await response.json()) as { error: string }).error).toContain(message);
});

test("secrets of sinks are not returned", async () => {
  const created = await create({
    sinks: [{ http: { url: "http://127.0.0.1:1", headers: { Authorization: "canary" } } }],
  });
  expect(JSON.stringify(created)).not.toContain("canary");
  const read = await gateway.ok("GET", `/api/v1/plugins/${created.id}`);
  expect(JSON.stringify(read)).not.toContain("canary");
  await gateway.api("DELETE", `/api/v1/plugins/${created.id}`);
});

test("lost lines are counted in the metrics", async () => {
  const { id } = await create({
    sinks: [{ tcp: { address: `127.0.0.1:${freePort()}` } }],
    queue: { ...quick, max_retry_time: 0 },
  });
  await fetch(`http://127.0.0.1:${gateway.httpPort}/x`);
  await eventually(async () => {
    const text = await (await gateway.api("GET", "/metrics")).text();
    return /sluice_plugin_dropped_total\{plugin="access-log"\} [1-9]/.test(text);
  });
  await gateway.api("DELETE", `/api/v1/plugins/${id}`);
});

test("connections of stream routes are logged when they end", async () => {
  const port = freePort();
  const target = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket, bytes) => void socket.end(`got ${bytes}`) },
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "raw",
    protocol: "tcp",
    targets: [{ host: "127.0.0.1", port: target.port }],
  });
  const route = await gateway.ok("POST", "/api/v1/stream-routes", {
    name: "line",
    listen_address: "127.0.0.1",
    listen_port: port,
    service_id: "raw",
  });
  const { id } = await create(
    { sinks: [{ file: { path: "streams.log" } }], queue: quick },
    { stream_route_id: route.id },
  );
  await create(
    { sinks: [{ file: { path: "streams.clf", format: "clf" } }], queue: quick },
    { stream_route_id: route.id },
  );
  const ended = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data() {}, close: () => ended.resolve() },
  });
  socket.write("12345");
  await ended.promise;
  const folder = join(gateway.dataDir, "logs");
  const [line] = await eventually(() => {
    const found = linesBelow(folder, "streams.log");
    return found.length > 0 ? found : null;
  });
  expect(JSON.parse(line ?? "")).toMatchObject({
    kind: "stream",
    client: "127.0.0.1",
    scheme: "tcp",
    route: "line",
    service: "raw",
    bytes_in: 5,
    bytes_out: 9,
    attempts: 1,
    reasons: [],
  });
  const [clf] = await eventually(() => {
    const found = linesBelow(folder, "streams.clf");
    return found.length > 0 ? found : null;
  });
  expect(clf).toMatch(/^127\.0\.0\.1 - - \[[^\]]+\] "TCP line" - 9$/);
  await gateway.api("DELETE", `/api/v1/plugins/${id}`);
  target.stop(true);
});

test("standard output receives whole lines of all workers", async () => {
  const { id } = await create({ sinks: [{ stdout: {} }], queue: quick });
  await Promise.all(
    Array.from({ length: 200 }, (_, at) =>
      fetch(`http://127.0.0.1:${gateway.httpPort}/out${at}?${"x".repeat(500)}`, {
        keepalive: false,
      }),
    ),
  );
  const records = await eventually(() => {
    const lines = gateway.stdout.split("\n").filter((line) => line.includes("/out"));
    return lines.length === 200 ? lines : null;
  });
  for (const line of records) expect(JSON.parse(line).status).toBe(200);
  await gateway.api("DELETE", `/api/v1/plugins/${id}`);
});
