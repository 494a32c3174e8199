// gRPC calls through the gateway: streaming, deadlines, limits of time and of messages, failures of the target.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { freePort, type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import {
  answer,
  answerOpen,
  answerTrailersOnly,
  framed,
  GrpcClient,
  type GrpcServer,
  type ReceivedCall,
  startGrpcServer,
} from "../../support/grpc-calls.ts";
import { eventually } from "../../support/poll.ts";

/** Shorter than any call here lasts. */
const SHORT = 150;

let server: GrpcServer;
let plane: RunningDataPlane;
let client: GrpcClient;
let handle: (call: ReceivedCall) => void = (call) => answer(call, ["hello"]);

/** The last call of the server. */
const lastCall = (): ReceivedCall => {
  const call = server.calls.at(-1);
  if (call === undefined) throw new Error("no call has arrived");
  return call;
};
const arrived = async (count: number): Promise<ReceivedCall> => {
  await eventually(() => server.calls.length > count);
  return lastCall();
};

beforeAll(async () => {
  server = await startGrpcServer((call) => handle(call));
  const targets = [{ port: server.port }];
  const timeouts = {
    response_timeout: SHORT,
    read_timeout: SHORT,
    write_timeout: SHORT,
    request_timeout: SHORT,
    retries: { per_try_timeout: SHORT },
  };
  plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice", body_min_rate: 1_000_000, max_body_bytes: 1000 },
    settings: { limits: { body_read_timeout: SHORT } },
    services: [
      { name: "calls", protocol: "h2c", targets, ...timeouts } as never,
      { name: "web", protocol: "http", targets: [{ port: freePort() }] },
      { name: "two", protocol: "grpc", targets: [...targets, { port: freePort() }] },
    ],
    routes: [
      { name: "calls", paths: ["/calls.S"], service_id: "calls" },
      { name: "idle", paths: ["/idle.S"], service_id: "calls", grpc_idle_timeout: 300 },
      { name: "small", paths: ["/small.S"], service_id: "calls", grpc_max_message_bytes: 10 },
      { name: "web", paths: ["/web.S"], service_id: "web" },
      { name: "two", paths: ["/two.S"], service_id: "two" },
    ],
  });
  client = GrpcClient.connect(plane.port);
});
afterAll(async () => {
  client.close();
  await plane.stop();
  await server.stop();
});

describe("a call", () => {
  test("passes with its metadata, messages and trailers", async () => {
    handle = (call) =>
      void call.received.then((messages) =>
        answer(call, messages, { "grpc-status": "5", "grpc-message": "not%20here", "x-tail": "t" }),
      );
    const call = await client.unary("/calls.S/M", "ping", { "x-meta": "m" });
    expect(call.messages).toEqual(["ping"]);
    expect(call.status).toBe(5);
    expect(call.message).toBe("not here");
    expect(call.trailers["x-tail"]).toBe("t");
    const { headers } = lastCall();
    expect(headers["te"]).toBe("trailers");
    expect(headers["x-meta"]).toBe("m");
    expect(headers["grpc-timeout"]).toBeUndefined();
  });

  test("streams both ways at once, longer than every time limit of the service", async () => {
    handle = (call) => answerOpen(call, "first");
    const before = server.calls.length;
    const call = client.open("/calls.S/M").send("one");
    const received = await arrived(before);
    await eventually(() => call.messages.length === 1);
    const startedAt = performance.now();
    await eventually(() => performance.now() - startedAt > 4 * SHORT);
    call.send("two");
    await eventually(() => received.messages().length === 2);
    call.stream.end();
    await received.received;
    received.stream.end();
    await call.ended;
    expect(call.status).toBe(0);
    expect(call.messages).toEqual(["first"]);
  });

  test("without a response outlives the time limits", async () => {
    handle = () => {};
    const before = server.calls.length;
    const call = client.open("/calls.S/M");
    const received = await arrived(before);
    const startedAt = performance.now();
    await eventually(() => performance.now() - startedAt > 4 * SHORT);
    answer(received, ["late"]);
    call.stream.end();
    expect((await call.ended).status).toBe(0);
  });

  test("whose client cancels is cancelled at the target", async () => {
    handle = (call) => answerOpen(call, "first");
    const before = server.calls.length;
    const call = client.open("/calls.S/M");
    const received = await arrived(before);
    await eventually(() => call.messages.length === 1);
    call.stream.close(8);
    await eventually(() => received.reset() === 8);
  });
});

describe("a deadline", () => {
  test("goes on to the target with what is left of it", async () => {
    handle = (call) => answer(call, []);
    await client.unary("/calls.S/M", "", { "grpc-timeout": "5S" });
    const [, number = ""] = /^(\d{4})m$/.exec(String(lastCall().headers["grpc-timeout"])) ?? [];
    expect(Number(number)).toBeGreaterThan(3000);
    expect(Number(number)).toBeLessThanOrEqual(5000);
  });

  test("ends a call without a response", async () => {
    handle = () => {};
    const call = await client.unary("/calls.S/M", "", { "grpc-timeout": "200m" });
    expect(call.status).toBe(4);
    expect(call.headers["grpc-status"]).toBe("4");
    const received = lastCall();
    await eventually(() => received.reset() === 8);
  });

  test("ends a stream by trailers", async () => {
    handle = (call) => answerOpen(call, "first");
    const call = await client.unary("/calls.S/M", "", { "grpc-timeout": "200m" });
    expect(call.messages).toEqual(["first"]);
    expect(call.trailers["grpc-status"]).toBe("4");
    const received = lastCall();
    await eventually(() => received.reset() === 8);
  });

  test("ends a stream that the client does not read by a reset", async () => {
    const piece = "x".repeat(60_000);
    handle = (call) => {
      answerOpen(call, piece);
      for (let count = 0; count < 100; count++) call.stream.write(framed(piece));
    };
    // Reached only when the target has written more than the client takes.
    const call = client.open("/calls.S/M", { "grpc-timeout": "3S" });
    call.stream.pause();
    await call.ended;
    expect(call.status).toBeNull();
    expect(call.stream.rstCode).not.toBe(0);
  });

  test("does not count against the target", async () => {
    handle = () => {};
    for (let count = 0; count < 8; count++)
      await client.unary("/calls.S/M", "", { "grpc-timeout": "1n" });
    handle = (call) => answer(call, []);
    expect((await client.unary("/calls.S/M")).status).toBe(0);
  });
});

test("grpc_idle_timeout ends a silent stream, and only that", async () => {
  handle = (call) => answerOpen(call, "first");
  const before = server.calls.length;
  const call = client.open("/idle.S/M");
  const received = await arrived(before);
  for (let count = 0; count < 6; count++) {
    const sent = performance.now();
    await eventually(() => performance.now() - sent > 100);
    call.send("still here");
  }
  expect(call.trailers["grpc-status"]).toBeUndefined();
  await call.ended;
  expect(call.status).toBe(14);
  expect(call.message).toBe("the stream was idle for too long");
  await eventually(() => received.reset() === 8);
});

describe("limits", () => {
  test("count messages: the whole body may be longer", async () => {
    handle = (call) => void call.received.then((messages) => answer(call, messages));
    const call = client.open("/calls.S/M");
    for (let count = 0; count < 5; count++) call.send("x".repeat(1000));
    call.stream.end();
    await call.ended;
    expect(call.status).toBe(0);
    expect(call.messages.length).toBe(5);
  });

  test.each([
    ["/calls.S/M", 1000, "of the listener"],
    ["/small.S/M", 10, "of the route"],
  ])("%s: a request's message of %d bytes passes, a longer one does not", async (path, limit) => {
    handle = (call) => void call.received.then(() => answer(call, []));
    expect((await client.unary(path, "x".repeat(limit))).status).toBe(0);
    const call = await client.unary(path, "x".repeat(limit + 1));
    expect(call.status).toBe(8);
    expect(call.message).toBe("a message of the request is too large");
  });

  test("apply to responses", async () => {
    handle = (call) => answer(call, ["x".repeat(10)]);
    expect((await client.unary("/small.S/M")).status).toBe(0);
    handle = (call) => answer(call, ["x".repeat(11)]);
    const call = await client.unary("/small.S/M");
    expect(call.status).toBe(8);
    expect(call.message).toBe("a message of the response is too large");
  });

  test("on bodies hold for services that cannot speak gRPC", async () => {
    const call = client.open("/web.S/M");
    for (let count = 0; count < 5; count++) call.send("x".repeat(1000));
    call.stream.end();
    expect((await call.ended).status).not.toBe(0);
  });
});

describe("a target", () => {
  test("that is gone: UNAVAILABLE, and the next one is tried", async () => {
    handle = (call) => answer(call, ["ok"]);
    for (let count = 0; count < 4; count++) expect((await client.unary("/two.S/M")).status).toBe(0);
  });

  test("that breaks off: the client learns it by trailers", async () => {
    handle = (call) => answerOpen(call, "first");
    const call = client.open("/calls.S/M");
    await eventually(() => call.messages.length === 1);
    server.breakOff();
    await call.ended;
    expect(call.messages).toEqual(["first"]);
    expect(call.status).toBe(14);
  });

  test.each([
    [503, 14],
    [404, 12],
    [200, 2],
  ])("that responds with HTTP %d in the place of gRPC: status %d", async (http, status) => {
    handle = ({ stream }) => {
      stream.respond({ ":status": http, "content-type": "text/html" });
      stream.end("<h1>no</h1>");
    };
    const call = await client.unary("/calls.S/M");
    expect(call.headers[":status"]).toBe(200 as never);
    expect(call.status).toBe(status);
    expect(call.message).toContain(`HTTP status ${http}`);
  });

  test("that responds with a status alone", async () => {
    handle = (call) => answerTrailersOnly(call, 9);
    const call = await client.unary("/calls.S/M");
    expect(call.headers["grpc-status"]).toBe("9");
    expect(call.status).toBe(9);
  });
});
