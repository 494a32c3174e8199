// Plugins on gRPC calls: what they change, what they leave alone, and what they report.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { freePort, type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import {
  answer,
  answerOpen,
  answerTrailersOnly,
  GrpcClient,
  type GrpcServer,
  type ReceivedCall,
  startGrpcServer,
} from "../../support/grpc-calls.ts";
import { startCollector } from "../../support/otlp-collector.ts";
import { eventually } from "../../support/poll.ts";

let server: GrpcServer;
let copies: GrpcServer;
let plane: RunningDataPlane;
let client: GrpcClient;
let collector: ReturnType<typeof startCollector>;
const lines: Record<string, unknown>[] = [];
const sink = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    lines.push(...((await request.json()) as Record<string, unknown>[]));
    return new Response("");
  },
});

const echo = (call: ReceivedCall): void =>
  void call.received.then((messages) => answer(call, messages));
let handle = echo;

const json = { body_json: { set: { a: "b" } } };

beforeAll(async () => {
  server = await startGrpcServer((call) => handle(call));
  copies = await startGrpcServer(echo);
  collector = startCollector();
  const names = [
    "acl",
    "cors",
    "transform",
    "compress",
    "pages",
    "cache",
    "mirrored",
    "split",
    "slow",
    "size",
    "queue",
    "logged",
    "traced",
    "validated",
  ];
  plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [
      { name: "calls", protocol: "grpc", targets: [{ port: server.port }] },
      { name: "copies", protocol: "grpc", targets: [{ port: copies.port }] },
      { name: "gone", protocol: "grpc", targets: [{ port: freePort() }] },
    ],
    routes: names.map((name) => ({ name, paths: [`/${name}.S`], service_id: "calls" })),
    consumers: [{ username: "anyone" }],
    plugins: [
      { name: "key-auth", routeId: "acl", config: { anonymous_consumer: "anyone" } },
      { name: "acl", routeId: "acl", config: { allow: ["admins"] } },
      { name: "cors", routeId: "cors", config: { origins: ["https://a.example"] } },
      {
        name: "transform",
        routeId: "transform",
        config: {
          request: { headers: { set: { "x-set": "yes" } }, body_template: "changed" },
          response: { headers: { set: { "x-seen": "yes" } }, ...json },
        },
      },
      { name: "compress", routeId: "compress", config: { types: ["application/*"], min_bytes: 0 } },
      { name: "error-pages", routeId: "pages", config: { replace_upstream: true } },
      { name: "response-cache", routeId: "cache", config: { ttl_default: 60 } },
      {
        name: "mirror",
        routeId: "mirrored",
        config: { service_id: "copies", methods: ["POST"], include_body: true },
      },
      {
        name: "traffic-split",
        routeId: "split",
        config: { rules: [{ targets: [{ service_id: "copies", weight: 1 }] }] },
      },
      {
        name: "bandwidth-limit",
        routeId: "slow",
        config: { download_bps: 100_000, upload_bps: 100_000 },
      },
      { name: "request-size-limit", routeId: "size", config: { max_body_bytes: 10 } },
      { name: "concurrency-limit", routeId: "queue", config: { max: 1 } },
      {
        name: "access-log",
        routeId: "logged",
        config: {
          sinks: [{ http: { url: `http://127.0.0.1:${sink.port}` } }],
          queue: { max_coalescing_delay: 0.005 },
        },
      },
      {
        name: "otel-tracing",
        routeId: "traced",
        config: { endpoint: collector.url, sample_rate: 1, batch: { max_delay: 20 } },
      },
      {
        name: "request-validation",
        routeId: "validated",
        config: { body_schema: { type: "object" } },
      },
    ],
  });
  client = GrpcClient.connect(plane.port);
});
afterAll(async () => {
  client.close();
  await plane.stop();
  await server.stop();
  await copies.stop();
  await collector.stop();
  await sink.stop(true);
});

describe("refusals", () => {
  test("acl: PERMISSION_DENIED", async () => {
    expect((await client.unary("/acl.S/M")).status).toBe(7);
  });

  test("request-size-limit limits messages, not streams", async () => {
    handle = echo;
    const call = client.open("/size.S/M");
    for (let count = 0; count < 4; count++) call.send("x".repeat(10));
    call.stream.end();
    expect((await call.ended).status).toBe(0);
    const refused = await client.unary("/size.S/M", "x".repeat(11));
    expect(refused.status).toBe(8);
  });

  test("concurrency-limit: a stream counts as long as it is open", async () => {
    handle = (call) => answerOpen(call, "first");
    const call = client.open("/queue.S/M");
    await eventually(() => call.messages.length === 1);
    expect((await client.unary("/queue.S/M")).status).toBe(14);
    call.stream.close(8);
    handle = echo;
    await eventually(async () => (await client.unary("/queue.S/M")).status === 0);
  });

  test("request-validation refuses what it cannot validate", async () => {
    expect((await client.unary("/validated.S/M", "{}")).status).toBe(2);
  });
});

describe("messages stay as they are", () => {
  test.each(["transform", "compress", "pages", "cache", "slow", "cors"])("%s", async (name) => {
    handle = echo;
    const before = server.calls.length;
    for (let count = 0; count < 2; count++) {
      const call = await client.unary(`/${name}.S/M`, '{"c":1}', {
        "accept-encoding": "gzip, br",
        origin: "https://a.example",
      });
      expect(call.status).toBe(0);
      expect(call.messages).toEqual(['{"c":1}']);
      expect(call.headers["content-encoding"]).toBeUndefined();
    }
    // None came from a cache.
    expect(server.calls.length).toBe(before + 2);
  });

  test("transform changes headers", async () => {
    handle = echo;
    const call = await client.unary("/transform.S/M");
    expect(call.headers["x-seen"]).toBe("yes");
    expect(server.calls.at(-1)?.headers["x-set"]).toBe("yes");
  });

  test("error-pages leaves gRPC failures alone", async () => {
    handle = (call) => answerTrailersOnly(call, 14);
    const call = await client.unary("/pages.S/M");
    expect(call.status).toBe(14);
    expect(call.headers["content-type"]).toBe("application/grpc");
  });

  test("both ways at once, also where plugins touch the body", async () => {
    for (const name of ["transform", "compress", "slow", "mirrored"]) {
      handle = (call) => answerOpen(call, "first");
      const call = client.open(`/${name}.S/M`);
      await eventually(() => call.messages.length === 1);
      const received = server.calls.at(-1);
      call.send("one");
      await eventually(() => received?.messages().length === 1);
      call.stream.end();
      received?.stream.end();
      expect((await call.ended).status).toBe(0);
    }
  });
});

test("mirror copies a call with its messages", async () => {
  handle = echo;
  expect((await client.unary("/mirrored.S/M", "copied")).status).toBe(0);
  const copy = await eventually(() =>
    copies.calls.find((call) => call.messages().includes("copied")),
  );
  expect(copy.headers["x-mirrored"]).toBe("1");
});

test("traffic-split sends calls to another service", async () => {
  const before = copies.calls.length;
  expect((await client.unary("/split.S/M", "there")).messages).toEqual(["there"]);
  expect(copies.calls.length).toBe(before + 1);
});

test("access-log has the status of the call", async () => {
  handle = (call) => answer(call, [], { "grpc-status": "5" });
  await client.unary("/logged.S/M");
  const line = await eventually(() => lines.at(-1));
  expect(line["grpc_status"]).toBe(5);
  expect(line["status"]).toBe(404);
});

test("otel-tracing has the attributes of gRPC", async () => {
  handle = (call) => answer(call, [], { "grpc-status": "13" });
  await client.unary("/traced.S/M");
  const spans = await collector.receives(2);
  const [one] = spans.filter(({ kind }) => kind === 2);
  expect(one?.attributes["rpc.system"]).toBe("grpc");
  expect(one?.attributes["rpc.service"]).toBe("traced.S");
  expect(one?.attributes["rpc.method"]).toBe("M");
  expect(one?.attributes["rpc.grpc.status_code"]).toBe(13);
  expect(one?.attributes["http.response.status_code"]).toBe(200);
  expect(one?.status).toEqual({ code: 2 });
});
