// grpc-web: calls of browsers through a real data plane on Bun's own server, to a target that speaks gRPC over HTTP/2.
import { afterEach, describe, expect, test } from "bun:test";
import { connect } from "node:http2";
import {
  type PluginSketch,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import {
  framed,
  grpcHandler,
  type GrpcWebBody,
  readGrpcWeb,
  readGrpcWebText,
} from "../../support/grpc-web.ts";
import { selfSigned } from "../../support/certificate.ts";
import { Random } from "../../support/random.ts";
import { eventually } from "../../support/poll.ts";
import { probePlugin, Trail } from "../../support/probe-plugin.ts";
import { type Http2Target, startHttp2Target } from "../upstream-http2/target.ts";

interface Scene {
  readonly plane: RunningDataPlane;
  readonly target: Http2Target;
}

let scene: Scene | null = null;
afterEach(async () => {
  await scene?.plane.stop();
  scene?.target.stop();
  scene = null;
});

async function start(
  more: readonly PluginSketch[] = [],
  config: Record<string, unknown> = {},
  service: object = {},
): Promise<Scene> {
  const target = await startHttp2Target(grpcHandler);
  const plane = await startDataPlane({
    services: [{ name: "app", protocol: "grpc", targets: [{ port: target.port }], ...service }],
    routes: [{ name: "all", service_id: "app" }],
    plugins: [{ name: "grpc-web", config }, ...more],
  });
  scene = { plane, target };
  return scene;
}

interface Called extends GrpcWebBody {
  readonly status: number;
  readonly headers: Headers;
}

async function call(
  { plane }: Scene,
  method: string,
  options: {
    readonly type?: string;
    readonly body?: BodyInit;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Called> {
  const { type = "application/grpc-web+proto", body = framed("hello"), headers = {} } = options;
  const response = await fetch(`${plane.url}/test.Service/${method}`, {
    method: "POST",
    headers: { "Content-Type": type, "X-Grpc-Web": "1", "X-User-Agent": "test", ...headers },
    body,
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const isText = response.headers.get("content-type")?.includes("-text") === true;
  const read = isText ? readGrpcWebText(bytes.toString("latin1")) : readGrpcWeb(bytes);
  return { status: response.status, headers: response.headers, ...read };
}

const texts = ({ messages }: GrpcWebBody) => messages.map((each) => each.toString());

describe("a unary call", () => {
  test.each([
    ["application/grpc-web", "application/grpc", "application/grpc-web"],
    ["application/grpc-web+proto", "application/grpc+proto", "application/grpc-web+proto"],
    ["application/grpc-web+json; x=y", "application/grpc+json", "application/grpc-web+json"],
    ["Application/GRPC-Web", "application/grpc", "application/grpc-web"],
    ["application/grpc-web-text", "application/grpc", "application/grpc-web-text"],
    [
      "application/grpc-web-text+proto",
      "application/grpc+proto",
      "application/grpc-web-text+proto",
    ],
  ])("of type %s", async (type, upstream, expected) => {
    const own = await start();
    const bytes = framed("hello");
    const body = type.includes("text") ? bytes.toString("base64") : bytes;
    const called = await call(own, "Echo", { type, body, headers: { "X-Meta": "kept" } });
    expect(texts(called)).toEqual(["hello"]);
    expect(called.trailers).toEqual({
      "grpc-status": "0",
      "grpc-message": "fine",
      "x-late": "last",
    });
    expect(called.status).toBe(200);
    expect(called.headers.get("content-type")).toBe(expected);
    expect(called.headers.get("x-initial")).toBe("early");
    const [seen] = own.target.requests;
    expect(seen).toMatchObject({
      "content-type": upstream,
      te: "trailers",
      "x-user-agent": "test",
      "x-meta": "kept",
    });
    expect(seen).not.toContainKeys(["x-grpc-web", "accept", "accept-encoding"]);
  });

  test("gets text when it accepts text, and bytes when it accepts bytes", async () => {
    const own = await start();
    const text = await call(own, "Echo", { headers: { Accept: "application/grpc-web-text" } });
    expect(text.headers.get("content-type")).toBe("application/grpc-web-text+proto");
    expect(texts(text)).toEqual(["hello"]);
    const bytes = await call(own, "Echo", {
      type: "application/grpc-web-text",
      body: framed("hello").toString("base64"),
      headers: { Accept: "application/grpc-web" },
    });
    expect(bytes.headers.get("content-type")).toBe("application/grpc-web");
    expect(texts(bytes)).toEqual(["hello"]);
  });

  test("passes compressed and long messages as they are", async () => {
    const own = await start();
    const long = Buffer.alloc(3_000_000, "abc");
    for (const isText of [false, true]) {
      const body = Buffer.concat([framed("packed", 1), framed(long)]);
      const called = await call(own, "Echo", {
        type: `application/grpc-web${isText ? "-text" : ""}`,
        body: isText ? body.toString("base64") : body,
        headers: { "Grpc-Encoding": "gzip" },
      });
      expect(called.flags).toEqual([1, 0]);
      expect(called.messages[1]?.equals(long)).toBe(true);
    }
    expect(own.target.requests[0]?.["grpc-encoding"]).toBe("gzip");
  });

  test("may be text in parts that have their own padding", async () => {
    const own = await start();
    const body = framed("hello");
    const parts = [body.subarray(0, 4), body.subarray(4, 6), body.subarray(6)];
    const text = parts.map((part) => part.toString("base64")).join("");
    const called = await call(own, "Echo", { type: "application/grpc-web-text", body: text });
    expect(texts(called)).toEqual(["hello"]);
    expect(own.target.requests[0]?.["content-length"]).toBeUndefined();
  });
});

describe("a stream of the server", () => {
  test("arrives with all messages and its trailers", async () => {
    const own = await start();
    for (const type of ["application/grpc-web", "application/grpc-web-text"]) {
      const body = framed("1000");
      const called = await call(own, "Count", {
        type,
        body: type.endsWith("text") ? body.toString("base64") : body,
      });
      expect(called.messages).toHaveLength(1000);
      expect(called.trailers?.["grpc-status"]).toBe("0");
    }
  });

  test.each(["application/grpc-web", "application/grpc-web-text"])(
    "is not held back, and ends at the target when the client leaves: %s",
    async (type) => {
      const { plane, target } = await start();
      const body = framed("hello");
      const response = await fetch(`${plane.url}/test.Service/Hang`, {
        method: "POST",
        headers: { "Content-Type": type },
        body: type.endsWith("text") ? body.toString("base64") : body,
      });
      const reader = response.body?.getReader();
      const { value = new Uint8Array() } = (await reader?.read()) ?? {};
      const first = type.endsWith("text")
        ? readGrpcWebText(Buffer.from(value).toString())
        : readGrpcWeb(Buffer.from(value));
      expect(texts(first)).toEqual(["first"]);
      await reader?.cancel();
      await eventually(() => target.resets.length === 1);
    },
  );

  test("ends with DEADLINE_EXCEEDED after grpc-timeout, which the target knows", async () => {
    const own = await start();
    const called = await call(own, "Hang", { headers: { "Grpc-Timeout": "300m" } });
    expect(texts(called)).toEqual(["first"]);
    expect(called.trailers?.["grpc-status"]).toBe("4");
    expect(own.target.requests[0]?.["grpc-timeout"]).toMatch(/^\d+m$/);
  });

  test("that breaks off within a message is incomplete", async () => {
    const own = await start();
    await expect(call(own, "Half")).rejects.toThrow();
  });
});

describe("a failure is a response of gRPC-Web", () => {
  test.each([
    ["of the target, without a body", "Fail", "5", "no such thing"],
    [
      "of something that is not gRPC",
      "Html",
      "14",
      "the target responded with HTTP status 503 instead of gRPC",
    ],
    ["of a target without a status", "Silent", "2", undefined],
  ])("%s", async (_, method, status, message) => {
    const own = await start();
    for (const type of ["application/grpc-web", "application/grpc-web-text"]) {
      const body = framed("hello");
      const called = await call(own, method, {
        type,
        body: type.endsWith("text") ? body.toString("base64") : body,
      });
      expect(called.status).toBe(200);
      expect(called.headers.get("content-type")).toBe(type);
      expect(called.trailers?.["grpc-status"]).toBe(status);
      if (message !== undefined) expect(called.trailers?.["grpc-message"]).toBe(message);
      expect(called.headers.has("grpc-status")).toBe(false);
    }
  });

  test("when no target is available", async () => {
    const own = await start([], {}, { targets: [] });
    const { status, trailers } = await call(own, "Echo");
    expect([status, trailers]).toEqual([
      200,
      { "grpc-status": "14", "grpc-message": "no target is available" },
    ]);
  });

  test("when another plugin rejects the request", async () => {
    const own = await start([{ name: "key-auth", config: {} }]);
    const { status, headers, trailers } = await call(own, "Echo");
    expect([status, trailers?.["grpc-status"]]).toEqual([200, "16"]);
    expect(headers.has("www-authenticate")).toBe(true);
    expect(own.target.requests).toEqual([]);
  });
});

test("logs and metrics have the status that the client does not see", async () => {
  const trail = new Trail();
  const target = await startHttp2Target(grpcHandler);
  const plane = await startDataPlane({
    services: [{ name: "app", protocol: "grpc", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
    ownPlugins: [probePlugin(trail, "probe", { phases: ["log"] })],
    plugins: [
      { name: "grpc-web" },
      { name: "key-auth", config: {}, when: { path: ["/test.Service/Closed"] } },
      { name: "probe", config: {} },
    ],
  });
  scene = { plane, target };
  for (const method of ["Echo", "Html", "Closed"]) await call(scene, method);
  const statuses = ["200", "503", "401"].map((status) => `probe.log ${status}`);
  await eventually(() => trail.steps.length === 3);
  expect(trail.take()).toEqual(statuses);
});

describe("a malformed request", () => {
  const web = "application/grpc-web";
  const text = "application/grpc-web-text";
  test.each([
    ["with trailers", web, framed("x: y\r\n", 0x80), "13"],
    ["that ends within a message", web, framed("hello").subarray(0, 8), "13"],
    ["with a message over the limit", web, framed(Buffer.alloc(101)), "8"],
    [
      "with a message over the limit, in text",
      text,
      framed(Buffer.alloc(101)).toString("base64"),
      "8",
    ],
    ["that is not base64", text, "AAAA!!!!", "13"],
    ["that ends within four characters", text, `${framed("").toString("base64")}A`, "13"],
    ["that is not base64 in the second part", text, `${framed("hello").toString("base64")}=`, "13"],
  ])("%s", async (_, type, body, status) => {
    const own = await start([], { max_message_bytes: 100 });
    const called = await call(own, "Echo", { type, body });
    expect(called.status).toBe(200);
    expect(called.trailers?.["grpc-status"]).toBe(status);
    expect(called.messages).toEqual([]);
    // The target still serves the next call.
    const next = framed(Buffer.alloc(100));
    expect((await call(own, "Echo", { body: next })).trailers?.["grpc-status"]).toBe("0");
  });
});

test("our own engine sends the trailers in the body alone", async () => {
  const target = await startHttp2Target(grpcHandler);
  const plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [{ name: "app", protocol: "grpc", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
    plugins: [{ name: "grpc-web" }],
  });
  scene = { plane, target };
  const session = connect(`https://localhost:${plane.port}`, { rejectUnauthorized: false });
  const stream = session.request({
    ":method": "POST",
    ":path": "/test.Service/Echo",
    "content-type": "application/grpc-web",
  });
  let trailers: object | null = null;
  stream.on("trailers", (fields) => {
    trailers = fields;
  });
  stream.end(framed("hello"));
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  session.close();
  const read = readGrpcWeb(Buffer.concat(pieces));
  expect([texts(read), read.trailers?.["grpc-status"], trailers]).toEqual([["hello"], "0", null]);
});

test("text may arrive in pieces of any size", async () => {
  const own = await start();
  const random = new Random(11);
  const long = Buffer.alloc(20_000, "0123456789");
  const text = framed(long).toString("base64");
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const next = at + 1 + Math.floor(random.next() * 2000);
    pieces.push(text.slice(at, next));
    at = next;
  }
  const body = new ReadableStream({
    async pull(controller) {
      await Bun.sleep(0);
      const piece = pieces.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(Buffer.from(piece));
    },
  });
  const called = await call(own, "Echo", { type: "application/grpc-web-text", body });
  expect(called.messages[0]?.equals(long)).toBe(true);
});

test("a message of a response over the limit of the route ends the call", async () => {
  const target = await startHttp2Target(grpcHandler);
  const plane = await startDataPlane({
    services: [{ name: "app", protocol: "grpc", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app", grpc_max_message_bytes: 100 }],
    plugins: [{ name: "grpc-web" }],
  });
  scene = { plane, target };
  const fits = await call(scene, "Echo", { body: framed(Buffer.alloc(100)) });
  expect(fits.trailers?.["grpc-status"]).toBe("0");
  const { messages, trailers } = await call(scene, "Echo", { body: framed(Buffer.alloc(101)) });
  expect([messages, trailers?.["grpc-status"]]).toEqual([[], "8"]);
});

test("a request that moves to another service is translated once", async () => {
  const first = await startHttp2Target(grpcHandler);
  const target = await startHttp2Target(grpcHandler);
  const plane = await startDataPlane({
    services: [
      { name: "old", protocol: "grpc", targets: [{ port: first.port }] },
      { name: "new", protocol: "grpc", targets: [{ port: target.port }] },
    ],
    routes: [{ name: "all", service_id: "old" }],
    plugins: [
      { name: "grpc-web", serviceId: "old" },
      { name: "grpc-web", serviceId: "new" },
      { name: "traffic-split", config: { rules: [{ targets: [{ service_id: "new" }] }] } },
    ],
  });
  scene = { plane, target };
  const type = "application/grpc-web-text";
  const body = framed("hello").toString("base64");
  expect(texts(await call(scene, "Echo", { type, body }))).toEqual(["hello"]);
  expect(target.requests).toHaveLength(1);
  first.stop();
});

test("other requests stay as they are", async () => {
  const own = await start([], {}, { protocol: "h2c" });
  const response = await fetch(`${own.plane.url}/test.Service/Echo`, {
    method: "POST",
    headers: { "Content-Type": "application/grpc-webx", Accept: "text/plain" },
    body: "plain",
  });
  expect(await response.text()).toBe("plain");
  expect(own.target.requests[0]).toMatchObject({
    "content-type": "application/grpc-webx",
    accept: "text/plain",
  });
});

test("pages of other origins get the headers of cors", async () => {
  const own = await start([
    { name: "cors", config: { origins: ["https://app.example"], expose_headers: ["x-initial"] } },
  ]);
  const headers = { Origin: "https://app.example" };
  const preflight = await fetch(`${own.plane.url}/test.Service/Echo`, {
    method: "OPTIONS",
    headers: {
      ...headers,
      "Access-Control-Request-Method": "POST",
      "Access-Control-Request-Headers": "content-type,x-grpc-web,x-user-agent,grpc-timeout",
    },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-headers")).toContain("x-grpc-web");
  for (const method of ["Echo", "Fail", "Html"]) {
    const called = await call(own, method, { headers });
    expect(called.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(called.headers.get("access-control-expose-headers")).toBe("x-initial");
  }
});

test("compress may code the translated response", async () => {
  const own = await start([
    { name: "compress", config: { types: ["application/*"], min_bytes: 1, flush: true } },
  ]);
  const called = await call(own, "Count", { body: framed("200") });
  expect(called.messages).toHaveLength(200);
  expect(called.trailers?.["grpc-status"]).toBe("0");
});
