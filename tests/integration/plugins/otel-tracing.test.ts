// otel-tracing on a real data plane with a collector that accepts, refuses and stalls: traces continue, spans arrive, requests never wait.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import otelTracing from "../../../src/plugins/otel-tracing.ts";
import { startCollector } from "../../support/otlp-collector.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const parent = (flags = "01") => `00-${TRACE}-${SPAN}-${flags}`;
const PARENT = /^00-([\da-f]{32})-([\da-f]{16})-(0[01])$/;

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "otel-tracing" }],
    answer: (request) =>
      new Response("answer", { status: Number(new URL(request.url).pathname.slice(1)) || 200 }),
  });
});
afterAll(() => scene.stop());

const collectors: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of collectors.splice(0)) await one.stop();
});

function collector(answer?: Parameters<typeof startCollector>[0]) {
  const started = startCollector(answer);
  collectors.push(started);
  return started;
}

const quick = { max_delay: 20 };
const configure = (config: Record<string, unknown>, others: { name: string }[] = []) =>
  scene.apply({
    plugins: [{ name: "otel-tracing", config }, ...others],
    removedPlugins: others.length === 0 ? ["request-id"] : [],
  });

const upstreamParent = (headers: Readonly<Record<string, string>> | undefined) =>
  PARENT.exec(headers?.["traceparent"] ?? "")?.slice(1) ?? [];

describe("without an endpoint", () => {
  test("a valid trace passes unchanged, with its state", async () => {
    await configure({});
    for (const value of [parent(), parent("00"), `${parent().replace("00-", "01-")}-more`]) {
      const { seen } = await scene.get("/", { traceparent: value, tracestate: "a=1,b=2" });
      expect(seen?.headers["traceparent"]).toBe(value);
      expect(seen?.headers["tracestate"]).toBe("a=1,b=2");
    }
  });

  test.each([
    ["none", undefined],
    ["zeros as trace", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["zeros as span", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["version ff", parent().replace("00-", "ff-")],
    ["capital letters", parent().toUpperCase()],
    ["something behind version 00", `${parent()}-x`],
    ["two of them", `${parent()}, ${parent()}`],
    ["rubbish", "00-zz-zz-zz"],
  ])("%s starts a trace, and drops its state", async (_, value) => {
    await configure({ sample_rate: 1 });
    const headers = { tracestate: "a=1", ...(value === undefined ? {} : { traceparent: value }) };
    const { seen } = await scene.get("/", headers);
    const [trace, span, flags] = upstreamParent(seen?.headers);
    expect([trace?.length, span?.length, flags]).toEqual([32, 16, "01"]);
    expect(trace).not.toBe(TRACE);
    expect(seen?.headers["tracestate"]).toBeUndefined();
  });

  test("a trace that starts here is sampled by the rate", async () => {
    await configure({ sample_rate: 0 });
    expect(upstreamParent((await scene.get("/")).seen?.headers)[2]).toBe("00");
  });
});

describe("with an endpoint", () => {
  test("a server span and a client span arrive, below the caller's", async () => {
    const { url, receives, batches } = collector();
    await configure({
      endpoint: url,
      headers: { authorization: "Bearer s3cret" },
      resource_attributes: { "service.name": "edge", zone: 'a"b' },
      batch: quick,
    });
    const before = BigInt(Date.now()) * 1_000_000n;
    const { seen } = await scene.get("/200?token=hidden", {
      traceparent: parent(),
      tracestate: "a=1",
      "user-agent": "test",
    });
    const spans = await receives(2);
    const [server, client] = spans;
    const [trace, span, flags] = upstreamParent(seen?.headers);
    expect([trace, span, flags]).toEqual([TRACE, client!.spanId, "01"]);
    expect(seen?.headers["tracestate"]).toBe("a=1");
    expect(server).toMatchObject({
      traceId: TRACE,
      parentSpanId: SPAN,
      traceState: "a=1",
      kind: 2,
      name: "GET all",
      attributes: {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.response.body.size": 6,
        "url.path": "/200",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "client.address": "127.0.0.1",
        "user_agent.original": "test",
        "sluice.route": "all",
        "sluice.service": "web",
      },
    });
    expect(server!.status).toBeUndefined();
    expect(client).toMatchObject({
      traceId: TRACE,
      parentSpanId: server!.spanId,
      kind: 3,
      name: "GET",
      attributes: {
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": scene.originPort,
        "sluice.target.id": "web-0",
      },
    });
    const times = [server!.startTimeUnixNano, client!.startTimeUnixNano, client!.endTimeUnixNano];
    const [start, clientStart, clientEnd] = times.map(BigInt) as [bigint, bigint, bigint];
    expect(start >= before && clientStart >= start && clientEnd >= clientStart).toBe(true);
    expect(BigInt(server!.endTimeUnixNano) >= clientEnd).toBe(true);
    const [batch] = batches;
    expect(batch!.path).toBe("/v1/traces");
    expect(batch!.headers.get("authorization")).toBe("Bearer s3cret");
    expect(batch!.resource).toEqual({ "service.name": "edge", zone: 'a"b' });
    expect(JSON.stringify(spans)).not.toContain("hidden");
  });

  test("a custom path is used", async () => {
    const { url, receives, batches } = collector();
    await configure({ endpoint: `${url}/otlp/x`, sample_rate: 1, batch: quick });
    await scene.get("/");
    await receives(2);
    expect(batches[0]!.path).toBe("/otlp/x");
    expect(batches[0]!.resource).toEqual({ "service.name": "sluice" });
  });

  test("the caller decides about sampling, whatever the rate", async () => {
    const { url, receives } = collector();
    await configure({ endpoint: url, sample_rate: 0, batch: quick });
    const unsampled = await scene.get("/", { traceparent: parent("00") });
    expect(upstreamParent(unsampled.seen?.headers)[2]).toBe("00");
    expect(upstreamParent((await scene.get("/")).seen?.headers)[2]).toBe("00");
    await scene.get("/", { traceparent: parent("01") });
    const spans = await receives(2);
    expect(spans.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE]);
    await configure({ endpoint: url, sample_rate: 1, batch: quick });
    await scene.get("/", { traceparent: parent("02") });
    await scene.get("/");
    expect((await receives(4)).slice(2).every(({ traceId }) => traceId !== TRACE)).toBe(true);
  });

  test("the rate decides how many are sampled, and the flag shows which", async () => {
    const { url, receives } = collector();
    await configure({ endpoint: url, sample_rate: 0.5, batch: quick });
    const flags: (string | undefined)[] = [];
    for (let n = 0; n < 200; n++)
      flags.push(upstreamParent((await scene.get("/")).seen?.headers)[2]);
    const sampled = flags.filter((each) => each === "01").length;
    expect(sampled).toBeGreaterThan(50);
    expect(sampled).toBeLessThan(150);
    expect(await receives(sampled * 2)).toHaveLength(sampled * 2);
  });

  test.each([
    ["an error of the target", "/503", { server: 2, client: 2, status: 503 }],
    ["what the client did wrong", "/404", { server: undefined, client: 2, status: 404 }],
  ])("%s is named by the conventions", async (_, path, wanted) => {
    const { url, receives } = collector();
    await configure({ endpoint: url, sample_rate: 1, batch: quick });
    await scene.get(path);
    const [server, client] = await receives(2);
    expect([server!.status?.code, client!.status?.code]).toEqual([wanted.server, wanted.client]);
    expect(client!.attributes["error.type"]).toBe(String(wanted.status));
  });

  test("an unreachable target, and a request without a route", async () => {
    const { url, receives } = collector();
    await configure({ endpoint: url, sample_rate: 1, batch: quick });
    await scene.apply({
      services: [{ name: "dead", retries: { count: 0 }, targets: [{ port: 1 }] }],
      routes: [{ name: "dead", service_id: "dead", paths: ["/dead"] }],
    });
    await scene.get("/dead");
    const [server, client] = await receives(2);
    expect(server).toMatchObject({
      status: { code: 2 },
      attributes: { "http.response.status_code": 502, "error.type": "502" },
    });
    expect(client).toMatchObject({
      status: { code: 2 },
      attributes: { "error.type": "no_answer" },
    });
    await scene.apply({ removedRoutes: ["dead"], removedServices: ["dead"] });
  });

  test("unusual methods and hosts cause no error", async () => {
    const { url, receives } = collector();
    await configure({ endpoint: url, sample_rate: 1, batch: quick });
    await scene.send("PROPFIND", '/a"b\\c', { headers: { "user-agent": 'x"\\\u00e9' } });
    const [server] = await receives(2);
    expect(server).toMatchObject({
      name: "HTTP all",
      attributes: {
        "http.request.method": "_OTHER",
        "http.request.method_original": "PROPFIND",
      },
    });
  });

  test("a trace that request-id started keeps its id, and the rate decides about it", async () => {
    const { url, receives } = collector();
    await configure({ endpoint: url, sample_rate: 1, batch: quick }, [{ name: "request-id" }]);
    const { seen, headers } = await scene.get("/");
    const [server] = await receives(2);
    expect(upstreamParent(seen?.headers)[0]).toBe(server!.traceId);
    expect(server!.parentSpanId).toBeUndefined();
    expect(server!.attributes["sluice.request.id"]).toBe(headers.get("x-request-id")!);
    await configure({ endpoint: url, sample_rate: 0, batch: quick }, [{ name: "request-id" }]);
    expect(upstreamParent((await scene.get("/")).seen?.headers)[2]).toBe("00");
  });
});

describe("a collector", () => {
  test.each([429, 502, 503, 504])(
    "that responds with %i gets a retry, and loses nothing",
    async (status) => {
      const { url, receives, batches } = collector((index) =>
        index === 0
          ? new Response(null, { status, headers: { "retry-after": "0" } })
          : Response.json({}),
      );
      await configure({ endpoint: url, sample_rate: 1, batch: quick });
      await scene.get("/");
      await receives(2);
      expect(batches.map((batch) => batch.status)).toEqual([status, 200]);
      expect(batches[0]!.spans).toEqual(batches[1]!.spans as never);
    },
  );

  test.each([400, 401, 500])("that responds with %i gets no retry", async (status) => {
    const { url, receives, batches } = collector((index) =>
      index === 0 ? new Response(null, { status }) : Response.json({}),
    );
    await configure({ endpoint: url, sample_rate: 1, batch: quick });
    const lines = scene.plane.log.length;
    await scene.get("/");
    const told = await eventually(() =>
      scene.plane.log.slice(lines).find(({ message }) => message === "spans were dropped"),
    );
    expect(told.fields).toMatchObject({
      spans: 2,
      in_all: 2,
      why: `the collector responded ${status}`,
    });
    await scene.get("/");
    await receives(2);
    expect(batches).toHaveLength(2);
  });

  test("that stalls delays no request, and spans above the limit are dropped and counted", async () => {
    const gate = Promise.withResolvers<void>();
    const { url, receives } = collector(async (index) => {
      if (index === 0) await gate.promise;
      return Response.json({});
    });
    await configure({
      endpoint: url,
      sample_rate: 1,
      // Sent when it is full, however slowly this machine fills it.
      batch: { max_size: 10, max_delay: 60_000, max_queue: 30 },
    });
    const lines = scene.plane.log.length;
    for (let n = 0; n < 40; n++) expect((await scene.get("/")).status).toBe(200);
    const told = scene.plane.log
      .slice(lines)
      .find(({ message }) => message === "spans were dropped");
    expect(told?.fields).toMatchObject({ why: "the queue is full" });
    gate.resolve();
    // What was under way, and a full queue.
    expect((await receives(40)).length).toBeLessThan(80);
  });

  test("that is gone gets retries up to a time limit", async () => {
    const gone = collector();
    await gone.stop();
    await configure({
      endpoint: gone.url,
      sample_rate: 1,
      batch: { max_delay: 10, max_retry_time: 1 },
    });
    const lines = scene.plane.log.length;
    await scene.get("/");
    const told = await eventually(() =>
      scene.plane.log.slice(lines).find(({ message }) => message === "spans were dropped"),
    );
    expect(told.fields).toMatchObject({ why: "the connection was refused" });
  });

  test("receives spans in batches, and queued ones when the instance ends", async () => {
    const { url, receives, batches } = collector();
    await configure({ endpoint: url, sample_rate: 1, batch: { max_size: 8, max_delay: 60_000 } });
    for (let n = 0; n < 6; n++) await scene.get("/");
    await receives(8);
    expect(batches.map(({ spans }) => spans.length)).toEqual([8]);
    await configure({});
    await receives(12);
    expect(batches.map(({ spans }) => spans.length)).toEqual([8, 4]);
  });
});

test("queued spans are sent at shutdown, and a collector that stalls delays it by a second at most", async () => {
  const { url, taken } = collector();
  const stalled = Promise.withResolvers<Response>();
  const stalling = collector(() => stalled.promise);
  const config = { sample_rate: 1, batch: { max_delay: 60_000 } };
  for (const [endpoint, arrived] of [
    [url, 2],
    [stalling.url, 0],
  ] as const) {
    const other = await pluginScene({
      plugins: [{ name: "otel-tracing", config: { ...config, endpoint } }],
    });
    await other.get("/");
    await other.plane.drain(1000);
    expect((arrived === 0 ? stalling : { taken }).taken()).toHaveLength(arrived);
    await other.stop();
  }
  stalled.resolve(Response.json({}));
});

test.each([
  [{ endpoint: "http://user:word@collector" }, "endpoint"],
  [{ endpoint: null, headers: { "a b": "x" } }, "headers.a b"],
  [{ endpoint: null, headers: { a: "x\ny" } }, "headers.a"],
])("%j is refused", (config, path) => {
  const issues = otelTracing.check?.({ headers: {}, ...config } as never) ?? [];
  expect(issues.map((issue) => issue.path)).toEqual([path]);
});
