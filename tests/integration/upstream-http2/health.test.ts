// Active health checks over HTTP/2: grpc.health.v1.Health/Check, and plain requests to targets without HTTP/1.1.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { IncomingHttpHeaders, SecureServerOptions, ServerHttp2Stream } from "node:http2";
import { readHealth } from "../../../src/shared-memory/target-health.ts";
import { Authority, type Leaf } from "../../support/authority.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type ServiceSketch, startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { startHttp2Target } from "./target.ts";

let authority: Authority;
let leaf: Leaf;
const stops = cleanupsOf(afterAll);
beforeAll(async () => {
  authority = await Authority.create("root");
  leaf = await authority.sign({ addresses: ["127.0.0.1"] });
});

type Active = NonNullable<NonNullable<ServiceSketch["health"]>["active"]>;

/** The health after the first check. */
async function checked(port: number, active: Active, service: Partial<ServiceSketch> = {}) {
  const gateway = await startDataPlane({
    services: [
      {
        name: "s",
        protocol: "grpc",
        ...service,
        health: {
          active: {
            enabled: true,
            type: "grpc",
            interval: 1,
            unhealthy_interval: 1,
            timeout: 2,
            healthy_threshold: 1,
            unhealthy_threshold: 1,
            ...active,
          },
        },
        targets: [{ port }],
      },
    ],
    routes: [{ name: "r", service_id: "s" }],
  });
  stops.push(() => gateway.stop());
  const row = gateway.targets.rowOf("s-0");
  const health = () => readHealth(gateway.targets, row, Date.now());
  await eventually(() => health().state === "healthy" || health().state === "unhealthy");
  return health();
}

interface HealthTarget {
  readonly port: number;
  readonly requests: readonly IncomingHttpHeaders[];
  /** Bodies of the checks, in hexadecimal. */
  readonly bodies: readonly string[];
}

type Respond = (stream: ServerHttp2Stream) => void;

async function healthTarget(respond: Respond, options: SecureServerOptions = {}) {
  const bodies: string[] = [];
  const target = await startHttp2Target((stream) => {
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("end", () => {
      bodies.push(Buffer.concat(pieces).toString("hex"));
      respond(stream);
    });
  }, options);
  stops.push(() => target.stop());
  return { port: target.port, requests: target.requests, bodies } satisfies HealthTarget;
}

/** `message` in hexadecimal, without its prefix. */
const grpc =
  (message: string, status = "0"): Respond =>
  (stream) => {
    const bytes = Buffer.from(message, "hex");
    stream.respond(
      { ":status": 200, "content-type": "application/grpc" },
      { waitForTrailers: true },
    );
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, bytes.length]), bytes]));
  };
const trailersOnly =
  (status: string): Respond =>
  (stream) =>
    stream.respond(
      { ":status": 200, "content-type": "application/grpc", "grpc-status": status },
      { endStream: true },
    );

test.each<{ why: string; respond: Respond; error: string | null }>([
  { why: "SERVING", respond: grpc("0801"), error: null },
  { why: "NOT_SERVING", respond: grpc("0802"), error: "the service is not serving" },
  { why: "UNKNOWN, the default", respond: grpc(""), error: "the service is not serving" },
  { why: "SERVICE_UNKNOWN", respond: grpc("0803"), error: "the service is not serving" },
  { why: "a malformed message", respond: grpc("ff"), error: "the service is not serving" },
  {
    why: "SERVING, then an error",
    respond: grpc("0801", "2"),
    error: "the gRPC health check failed",
  },
  {
    why: "NOT_FOUND",
    respond: trailersOnly("5"),
    error: "the target does not know the service of the check",
  },
  {
    why: "UNIMPLEMENTED",
    respond: trailersOnly("12"),
    error: "the target has no gRPC health service",
  },
  { why: "UNAVAILABLE", respond: trailersOnly("14"), error: "the gRPC health check failed" },
  {
    why: "an HTTP status",
    respond: (stream) => stream.respond({ ":status": 503 }, { endStream: true }),
    error: "503",
  },
  {
    why: "a reset",
    respond: (stream) => stream.close(2),
    error: "the target reset the request",
  },
])("a gRPC check that gets $why", async ({ respond, error }) => {
  const { port } = await healthTarget(respond);
  const health = await checked(port, {});
  expect(health.state).toBe(error === null ? "healthy" : "unhealthy");
  if (error !== null) expect(String(health.lastError)).toContain(error);
});

test("the check names its service", async () => {
  const { port, bodies, requests } = await healthTarget(grpc("0801"));
  await checked(port, { grpc_service: "shop.Cart" });
  expect(bodies[0]).toBe(`000000000b0a09${Buffer.from("shop.Cart").toString("hex")}`);
  expect(requests[0]).toMatchObject({
    ":method": "POST",
    ":path": "/grpc.health.v1.Health/Check",
    ":authority": `127.0.0.1:${port}`,
    "content-type": "application/grpc",
    te: "trailers",
  });
});

test("without a name it asks for the server as a whole", async () => {
  const { port, bodies } = await healthTarget(grpc("0801"));
  await checked(port, {});
  expect(bodies[0]).toBe("0000000000");
});

test.each([
  { type: "grpcs" as const, why: "by its type" },
  { type: "grpc" as const, why: "as the traffic" },
])("a check uses TLS $why", async ({ type }) => {
  const { port } = await healthTarget(grpc("0801"), leaf);
  const tls = { ca_certificates: authority.cert };
  expect((await checked(port, { type }, { protocol: "grpcs", tls })).state).toBe("healthy");
});

test("an HTTP check of an HTTP/2 service speaks HTTP/2", async () => {
  const { port, requests } = await healthTarget((stream) => {
    stream.respond({ ":status": 200 });
    stream.end("all is well");
  });
  const active: Active = { type: "http", path: "/up", expect_body: "well" };
  expect((await checked(port, active, { protocol: "h2c" })).state).toBe("healthy");
  expect(requests[0]).toMatchObject({ ":method": "GET", ":path": "/up" });
});

test("a refused connection is the reason", async () => {
  const health = await checked(quietPort(), {});
  expect([health.state, String(health.lastError)]).toEqual([
    "unhealthy",
    "the target refused the connection",
  ]);
});
