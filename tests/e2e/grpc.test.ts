// gRPC through the compiled executable, between a client and servers of @grpc/grpc-js in Node: every kind of call over every kind of listener.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import type { CallCommand } from "../support/grpc/protocol.ts";
import { GrpcScene, LISTENERS, PLAIN, SECURE } from "../support/grpc-scene.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "node");

const MEGABYTE = 1024 * 1024;
const LONG_STREAM = 10_000;
const MOST_GROWTH_MB = 40;

let scene: GrpcScene;

beforeAll(async () => {
  scene = await GrpcScene.start();
});
afterAll(async () => await scene?.stop());

type Call = Omit<CallCommand, "op" | "channel">;

const unary = (more: Partial<Call> = {}): Call => ({
  method: "/test.Echo/Unary",
  kind: "unary",
  ...more,
});
const chat = (more: Partial<Call> = {}): Call => ({
  method: "/test.Echo/Chat",
  kind: "bidi",
  ...more,
});

/** Sum of the resident memory of the gateway, in megabytes. */
const residentMb = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${scene.gateway.pid}/status`, "utf8"))?.[1]) /
  1024;

const ways = LISTENERS.flatMap((listener) =>
  [PLAIN, SECURE].map((authority) => ({ listener, authority })),
);

describe.each(ways)("over $listener to $authority", ({ listener, authority }) => {
  const call = (command: Call) =>
    scene.client.call({ channel: scene.channel(listener, authority), ...command });
  const seenCancelled = async () => {
    const { messages } = await call(unary({ method: "/test.Echo/Seen" }));
    return (JSON.parse(messages[0] ?? "{}") as { cancelled: number }).cancelled;
  };

  test("a unary call, with metadata both ways and in trailers", async () => {
    const metadata = { "x-text": "a, b", "x-bytes-bin": "AP8KDQ==" };
    expect(await call(unary({ messages: ["hello"], metadata }))).toMatchObject({
      code: 0,
      messages: ["hello"],
      initial: { "x-text": "a, b", "x-bytes-bin": "AP8KDQ==" },
      trailing: { "t-text": "a, b", "t-bytes-bin": "AP8KDQ==" },
    });
  });

  test("a stream of the client", async () => {
    const command: Call = { method: "/test.Echo/Collect", kind: "client", times: 100, size: 1000 };
    expect(await call(command)).toMatchObject({ code: 0, messages: ["100 100000"] });
  });

  test("a stream of the server", async () => {
    const command: Call = { method: "/test.Echo/Repeat", kind: "server", messages: ["500 1000"] };
    expect(await call(command)).toMatchObject({ code: 0, count: 500, bytes: 500_000 });
  });

  test("a stream of both, in order", async () => {
    const messages = Array.from({ length: 20 }, (_, at) => `number ${at}`);
    expect(await call(chat({ messages }))).toMatchObject({ code: 0, messages });
  });

  test("a deadline ends the call for client and server", async () => {
    const before = await seenCancelled();
    const { code, elapsedMs } = await call(unary({ method: "/test.Echo/Wait", deadlineMs: 300 }));
    expect(code).toBe(4);
    expect(elapsedMs).toBeLessThan(60_000);
    await eventually(async () => (await seenCancelled()) > before);
  });

  test("a cancelled call ends at the server", async () => {
    const before = await seenCancelled();
    const command = unary({ method: "/test.Echo/Wait", cancelAfterMs: 100 });
    expect(await call(command)).toMatchObject({ code: 1 });
    await eventually(async () => (await seenCancelled()) > before);
    const stream = chat({ method: "/test.Echo/Hold", cancelAfter: 1, isLeftOpen: true });
    expect(await call(stream)).toMatchObject({ code: 1 });
    await eventually(async () => (await seenCancelled()) > before + 1);
  });

  test("a server that cancels", async () => {
    const command = chat({ method: "/test.Echo/Cancel", isLeftOpen: true });
    expect(await call(command)).toMatchObject({ code: 1, details: "cancelled by the server" });
  });

  test("an error without messages keeps its details", async () => {
    const messages = ["7 not for you: 100 %, ä"];
    expect(await call(unary({ method: "/test.Echo/Fail", messages }))).toMatchObject({
      code: 7,
      details: "not for you: 100 %, ä",
      trailing: { "grpc-status-details-bin": "AP8KDQ==", "x-reason": "asked for" },
      messages: [],
    });
  });

  test("a method that the server lacks", async () => {
    expect(await call(unary({ method: "/test.Echo/None" }))).toMatchObject({ code: 12 });
  });

  test("4 MB each way", async () => {
    const size = 4 * MEGABYTE - 100;
    expect(await call(unary({ size }))).toMatchObject({ code: 0, bytes: size });
  });

  test("compressed messages", async () => {
    const channel = {
      ...scene.channel(listener, authority),
      arguments: { "grpc.default_compression_algorithm": 2 },
    };
    const size = 300_000;
    expect(await scene.client.call({ channel, ...unary({ size }) })).toMatchObject({
      code: 0,
      bytes: size,
    });
  });

  test("health and reflection", async () => {
    const health = unary({ method: "/grpc.health.v1.Health/Check" });
    expect(await call(health)).toMatchObject({ code: 0, messages: ["\b\u0001"] });
    const reflection = chat({
      method: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    });
    const { code, messages } = await call(reflection);
    expect(code).toBe(0);
    expect(messages[0]).toContain("test.Echo");
  });

  test("100 calls at once", async () => {
    const channel = scene.channel(listener, authority);
    const results = await scene.client.calls(100, { channel, ...chat({ times: 10, size: 100 }) });
    expect(results.filter(({ code, count }) => code !== 0 || count !== 10)).toEqual([]);
  });
});

test(`${LONG_STREAM} messages on one stream without growth of memory`, async () => {
  const command = chat({ times: LONG_STREAM, size: 1000 });
  const channel = scene.channel("full-https");
  // Warm: buffers and code are there.
  await scene.client.call({ channel, ...command });
  const before = residentMb();
  for (let round = 0; round < 3; round++)
    expect(await scene.client.call({ channel, ...command })).toMatchObject({
      code: 0,
      count: LONG_STREAM,
      bytes: LONG_STREAM * 1000,
    });
  expect(residentMb() - before).toBeLessThan(MOST_GROWTH_MB);
});

test("a client's pings keep its connection", async () => {
  const channel = {
    ...scene.channel("full-https"),
    arguments: { "grpc.keepalive_time_ms": 200, "grpc.keepalive_timeout_ms": 2000 },
  };
  const command = chat({ isLeftOpen: true, cancelAfterMs: 1500 });
  expect(await scene.client.call({ channel, ...command })).toMatchObject({ code: 1, count: 1 });
});

test("a message over the route's limit ends the call with RESOURCE_EXHAUSTED", async () => {
  const route = { grpc_max_message_bytes: MEGABYTE };
  await scene.gateway.ok("PATCH", "/api/v1/routes/plain", route);
  const channel = scene.channel("full-https");
  const send = (size: number) => scene.client.call({ channel, ...unary({ size }) });
  expect(await send(MEGABYTE)).toMatchObject({ code: 0, bytes: MEGABYTE });
  expect(await send(MEGABYTE + 1)).toMatchObject({ code: 8 });
  await scene.gateway.ok("PATCH", "/api/v1/routes/plain", { grpc_max_message_bytes: 0 });
});

test("a host without a route is UNIMPLEMENTED, a target that is away UNAVAILABLE", async () => {
  const none = { ...scene.channel("full-http"), authority: "none.test" };
  expect(await scene.client.call({ channel: none, ...unary() })).toMatchObject({ code: 12 });
  await scene.secure.kill();
  const channel = scene.channel("full-http", SECURE);
  expect(await scene.client.call({ channel, ...unary() })).toMatchObject({ code: 14 });
  await scene.secure.start();
  await eventually(async () => (await scene.client.call({ channel, ...unary() })).code === 0);
});
