// What the status of a gRPC call means for retries, passive health checks and the circuit-breaker.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import {
  answer,
  answerTrailersOnly,
  GrpcClient,
  type GrpcServer,
  startGrpcServer,
} from "../../support/grpc-calls.ts";

let good: GrpcServer;
let bad: GrpcServer;
let plane: RunningDataPlane;
let client: GrpcClient;
/** What the bad server responds; in trailers after a message, or alone. */
let behavior = { status: 14, isAlone: true };

beforeAll(async () => {
  good = await startGrpcServer(
    (call) => void call.received.then((messages) => answer(call, messages)),
  );
  bad = await startGrpcServer((call) => {
    const { status, isAlone } = behavior;
    void call.received.then(() =>
      isAlone
        ? answerTrailersOnly(call, status)
        : answer(call, ["part"], { "grpc-status": String(status) }),
    );
  });
  const on: "503"[] = ["503"];
  const retries = { on, methods: "all", count: 1, budget_percent: 100 } as const;
  const both = [{ port: bad.port }, { port: good.port, priority: 1 }];
  const health = { passive: { enabled: true, consecutive_failures: 2, ejection_seconds: 60 } };
  plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [
      { name: "retried", protocol: "grpc", targets: both, retries },
      {
        name: "once",
        protocol: "grpc",
        targets: both,
        retries: { ...retries, methods: "idempotent" },
      },
      { name: "watched", protocol: "grpc", targets: both, retries: { count: 0 }, health },
      { name: "broken", protocol: "grpc", targets: [{ port: bad.port }], retries: { count: 0 } },
    ],
    routes: ["retried", "once", "watched", "broken"].map((name) => ({
      name,
      paths: [`/${name}.S`],
      service_id: name,
    })),
    plugins: [{ name: "circuit-breaker", routeId: "broken", config: { consecutive: 2 } }],
  });
  client = GrpcClient.connect(plane.port);
});
afterAll(async () => {
  client.close();
  await plane.stop();
  await good.stop();
  await bad.stop();
});
beforeEach(() => {
  behavior = { status: 14, isAlone: true };
});

describe("a retry", () => {
  test("follows UNAVAILABLE without a message, with the same messages", async () => {
    const call = await client.unary("/retried.S/M", "again");
    expect(call.status).toBe(0);
    expect(call.messages).toEqual(["again"]);
  });

  test.each([
    ["after a message of the response", { status: 14, isAlone: false }, "x"],
    ["of a status that is none of retries.on", { status: 9, isAlone: true }, "x"],
    ["of a request too long to be kept", { status: 14, isAlone: true }, "x".repeat(20_000)],
  ])("never happens %s", async (_why, next, text) => {
    behavior = next;
    expect((await client.unary("/retried.S/M", text)).status).toBe(next.status);
  });

  test("needs retries.methods: gRPC calls are POST", async () => {
    expect((await client.unary("/once.S/M")).status).toBe(14);
  });
});

describe("a passive health check", () => {
  test("takes application errors for a working target", async () => {
    for (const isAlone of [true, false]) {
      behavior = { status: 5, isAlone };
      for (let count = 0; count < 4; count++)
        expect((await client.unary("/watched.S/M")).status).toBe(5);
    }
  });

  test("never ejects a target for deadlines of clients", async () => {
    for (const isAlone of [true, false]) {
      behavior = { status: 4, isAlone };
      const before = bad.calls.length;
      for (let count = 0; count < 4; count++)
        await client.unary("/watched.S/M", "", { "grpc-timeout": "9S" });
      expect(bad.calls.length).toBe(before + 4);
    }
  });

  test("ejects a target for statuses in trailers", async () => {
    behavior = { status: 14, isAlone: false };
    const before = bad.calls.length;
    for (let count = 0; count < 2; count++)
      expect((await client.unary("/watched.S/M")).status).toBe(14);
    expect((await client.unary("/watched.S/M")).status).toBe(0);
    expect(bad.calls.length).toBe(before + 2);
  });
});

test("circuit-breaker counts gRPC failures, and responds UNAVAILABLE", async () => {
  behavior = { status: 13, isAlone: false };
  await client.unary("/broken.S/M");
  await client.unary("/broken.S/M");
  const before = bad.calls.length;
  const call = await client.unary("/broken.S/M");
  expect(call.status).toBe(14);
  expect(call.message).toBe("the service is temporarily unavailable");
  expect(call.headers["retry-after"]).toBeDefined();
  expect(bad.calls.length).toBe(before);
});
