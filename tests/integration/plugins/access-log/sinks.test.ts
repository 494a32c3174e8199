// Remote sinks of access-log: what they receive, and that requests do not wait for slow or unreachable ones.
import { afterEach, describe, expect, test } from "bun:test";
import type { Socket } from "bun";
import { cleanupsOf } from "../../../support/cleanups.ts";
import { pluginScene, type PluginScene } from "../../../support/plugin-scene.ts";
import { selfSigned } from "../../../support/certificate.ts";
import { freePort } from "../../../support/data-plane.ts";
import { eventually } from "../../../support/poll.ts";
import { quick } from "./log-scene.ts";

const undo = cleanupsOf(afterEach);

async function sceneWith(
  sink: Record<string, unknown>,
  config: Record<string, unknown> = {},
): Promise<PluginScene> {
  const scene = await pluginScene({
    plugins: [{ name: "access-log", config: { queue: quick, ...config, sinks: [sink] } }],
  });
  undo.push(() => scene.stop());
  return scene;
}

interface Received {
  readonly path: string;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what it is is what is tested
  readonly body: any;
}

/** A server that responds with these statuses one after the other, and with the last one from there on. */
function logServer(statuses: readonly number[] = [200]) {
  const batches: Received[] = [];
  let count = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const status = statuses[Math.min(count++, statuses.length - 1)] ?? 200;
      const body = await request.json();
      if (status < 300) batches.push({ path: pathname, headers: request.headers, body });
      return new Response(null, { status });
    },
  });
  undo.push(() => server.stop(true));
  return {
    url: `http://127.0.0.1:${server.port}`,
    batches,
    attempts: () => count,
    first: () => eventually(() => batches[0] ?? null),
  };
}

describe("http", () => {
  test("receives lists of objects, with the configured fields", async () => {
    const server = logServer();
    const scene = await sceneWith({
      http: { url: `${server.url}/in`, headers: { Authorization: "Bearer t" } },
    });
    await scene.get("/one");
    const { path, headers, body } = await server.first();
    expect(path).toBe("/in");
    expect(headers.get("authorization")).toBe("Bearer t");
    expect(body[0]).toMatchObject({ target: "/one", status: 200 });
  });

  test("receives texts where lines are not JSON, at most one batch at once", async () => {
    const server = logServer();
    const scene = await sceneWith(
      { http: { url: server.url, format: "template", template: "${request.path}" } },
      { queue: { max_batch_size: 2, max_coalescing_delay: 3600 } },
    );
    for (const path of ["/1", "/2", "/3", "/4"]) await scene.get(path);
    await eventually(() => server.batches.length === 2);
    expect(server.batches.map(({ body }) => body)).toEqual([
      ["/1", "/2"],
      ["/3", "/4"],
    ]);
  });

  test("receives a batch again after temporary failures", async () => {
    const server = logServer([500, 503, 429, 200]);
    const scene = await sceneWith({ http: { url: server.url } });
    await scene.get("/one");
    const { body } = await server.first();
    expect(body).toHaveLength(1);
    expect(server.attempts()).toBe(4);
  });

  test("receives a batch once that fails permanently", async () => {
    const server = logServer([400, 200]);
    const scene = await sceneWith({ http: { url: server.url } });
    await scene.get("/one");
    await eventually(() => server.attempts() === 1);
    await scene.get("/two");
    const { body } = await server.first();
    expect(body[0].target).toBe("/two");
    expect(server.attempts()).toBe(2);
  });
});

test("loki receives a stream with labels, and times in nanoseconds", async () => {
  const server = logServer([204]);
  const scene = await sceneWith({
    loki: {
      url: server.url,
      labels: { job: "gate", env: "test" },
      headers: { "X-Scope-OrgID": "t1" },
      format: "clf",
    },
  });
  const before = Date.now();
  await scene.get("/one");
  const { path, headers, body } = await server.first();
  expect(path).toBe("/loki/api/v1/push");
  expect(headers.get("x-scope-orgid")).toBe("t1");
  const [{ stream, values }] = body.streams;
  expect(stream).toEqual({ job: "gate", env: "test" });
  expect(values[0][0]).toMatch(/^\d{19}$/);
  expect(Math.abs(Number(values[0][0].slice(0, 13)) - before)).toBeLessThan(5000);
  expect(values[0][1]).toContain('"GET /one HTTP/1.1" 200');
});

test("a collector receives log records with severities and the trace", async () => {
  const server = logServer();
  const scene = await sceneWith({
    otlp: { url: server.url, resource_attributes: { "service.namespace": "edge" } },
  });
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  await scene.get("/one", { traceparent });
  const { path, body } = await server.first();
  expect(path).toBe("/v1/logs");
  const [{ resource, scopeLogs }] = body.resourceLogs;
  expect(resource.attributes).toEqual([
    { key: "service.name", value: { stringValue: "sluice" } },
    { key: "service.namespace", value: { stringValue: "edge" } },
  ]);
  const [record] = scopeLogs[0].logRecords;
  expect(record).toMatchObject({
    severityNumber: 9,
    severityText: "INFO",
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    attributes: [{ key: "http.response.status_code", value: { intValue: "200" } }],
  });
  expect(JSON.parse(record.body.stringValue).target).toBe("/one");
});

/** What is sent over TCP, of all connections together. */
function tcpServer(tls?: { cert: string; key: string }, port = 0) {
  const received = { text: "", connections: 0 };
  const sockets = new Set<Socket<undefined>>();
  const server = Bun.listen<undefined>({
    hostname: "127.0.0.1",
    port,
    ...(tls === undefined ? {} : { tls }),
    socket: {
      open(socket) {
        received.connections++;
        sockets.add(socket);
      },
      data(_, bytes) {
        received.text += bytes.toString();
      },
      error() {},
    },
  });
  const stop = () => server.stop(true);
  undo.push(stop);
  const cut = () => {
    for (const socket of sockets) socket.end();
    sockets.clear();
  };
  return { address: `127.0.0.1:${server.port}`, port: server.port, received, cut, stop };
}

describe("tcp", () => {
  test("receives lines over one connection, and over another after a disconnect", async () => {
    const server = tcpServer();
    const scene = await sceneWith({
      tcp: { address: server.address, format: "template", template: "${request.path}" },
    });
    await scene.get("/1");
    await eventually(() => server.received.text === "/1\n");
    await scene.get("/2");
    await eventually(() => server.received.text === "/1\n/2\n");
    expect(server.received.connections).toBe(1);
    server.cut();
    await eventually(async () => {
      await scene.get("/3");
      return server.received.text.endsWith("/3\n");
    });
    expect(server.received.connections).toBe(2);
  });

  test("receives queued lines after it starts", async () => {
    const port = freePort();
    const scene = await sceneWith({ tcp: { address: `127.0.0.1:${port}` } });
    for (let at = 0; at < 3; at++) expect((await scene.get(`/${at}`)).status).toBe(200);
    const server = tcpServer(undefined, port);
    await eventually(() => server.received.text.split("\n").length === 4);
  });
});

async function udpServer() {
  const received: string[] = [];
  const server = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: { data: (_, datagram) => void received.push(datagram.toString()) },
  });
  undo.push(() => server.close());
  return { server, received };
}

const SYSLOG =
  /^<134>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [!-~]+ gate \d+ access-log - \{.*"target":"\/one".*\}$/;

describe("syslog", () => {
  test("receives datagrams by RFC 5424, with severities by status", async () => {
    const { server, received } = await udpServer();
    const scene = await sceneWith({
      syslog: { address: `127.0.0.1:${server.port}`, app_name: "gate" },
    });
    await scene.get("/one");
    await eventually(() => received.length === 1);
    expect(received[0]).toMatch(SYSLOG);
    await scene.apply({ removedRoutes: ["all"] });
    await scene.get("/none");
    await eventually(() => received.length === 2);
    expect(received[1]).toStartWith("<132>1 ");
  });

  test.each(["tcp", "tls"] as const)("receives counted messages over %s", async (transport) => {
    const own = await selfSigned();
    const server = tcpServer(transport === "tls" ? own : undefined);
    const scene = await sceneWith({
      syslog: {
        address: `localhost:${server.port}`,
        transport,
        app_name: "gate",
        ca_certificate: transport === "tls" ? own.cert : null,
      },
    });
    await scene.get("/one");
    const text = await eventually(() => server.received.text || null);
    const [, length = "", message = ""] = /^(\d+) (.*)$/s.exec(text) ?? [];
    expect(message).toMatch(SYSLOG);
    expect(Buffer.byteLength(message)).toBe(Number(length));
  });
});

test("a log server with an untrusted certificate, or one for another name, receives nothing", async () => {
  const other = await selfSigned("logs.example");
  for (const ca of [null, other.cert]) {
    const server = tcpServer(other);
    const scene = await sceneWith(
      { syslog: { address: `localhost:${server.port}`, transport: "tls", ca_certificate: ca } },
      { queue: { ...quick, max_retry_time: 0 } },
    );
    await scene.get("/one");
    await eventually(() => scene.plane.log.some(({ message }) => message.includes("dropped")));
    expect(server.received.text).toBe("");
  }
});

test("udp receives a datagram for each line, however long", async () => {
  const { server, received } = await udpServer();
  const scene = await sceneWith({
    udp: { address: `127.0.0.1:${server.port}`, format: "template", template: "${request.target}" },
  });
  await scene.get("/1");
  await scene.get(`/2?${"x".repeat(7000)}`);
  await eventually(() => received.length === 2);
  expect(received.sort().map((text) => text.length)).toEqual([2, 7003]);
});

describe("a sink that accepts nothing", () => {
  test("loses its own records when the queue is full, and affects no request", async () => {
    const held = Promise.withResolvers<Response>();
    let asked = 0;
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => {
        asked++;
        return held.promise;
      },
    });
    undo.push(() => server.stop(true));
    const scene = await sceneWith(
      { http: { url: `http://127.0.0.1:${server.port}` } },
      { queue: { ...quick, max_entries: 3 } },
    );
    await scene.get("/first");
    await eventually(() => asked === 1);
    for (let at = 0; at < 20; at++) expect((await scene.get(`/${at}`)).status).toBe(200);
    const told = await eventually(() =>
      scene.plane.log.find(({ message }) => message.includes("access log were dropped")),
    );
    expect(told.fields).toMatchObject({ sink: "http", why: "the queue is full" });
    held.resolve(new Response());
  });

  test("delays neither another sink nor requests when it hangs before the first byte", async () => {
    const silent = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data() {}, open: (socket) => void socket.pause() },
    });
    undo.push(() => silent.stop(true));
    const server = logServer();
    const scene = await pluginScene({
      plugins: [
        {
          name: "access-log",
          config: {
            queue: quick,
            sinks: [
              { tcp: { address: `127.0.0.1:${silent.port}` } },
              { http: { url: `http://127.0.0.1:${silent.port}` } },
              { http: { url: server.url } },
            ],
          },
        },
      ],
    });
    undo.push(() => scene.stop());
    for (let at = 0; at < 50; at++)
      expect((await scene.get(`/${at}?${"x".repeat(6000)}`)).status).toBe(200);
    await eventually(() => server.batches.flatMap(({ body }) => body).length === 50);
  });
});
