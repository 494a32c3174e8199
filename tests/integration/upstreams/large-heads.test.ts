// Heads at the size of what applications send: 20 KB of cookies by default, and 64 KB of gRPC metadata by the limits of listener and settings.
import { afterAll, beforeAll, expect, test } from "bun:test";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { cleanupsOf } from "../../support/cleanups.ts";
import {
  type DataPlaneSketch,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { framed } from "../../support/grpc-calls.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { exchange } from "../../support/raw-exchange.ts";

const stops = cleanupsOf(afterAll);

/** Twenty of 1 KB. */
const cookies = Array.from({ length: 20 }, (_, at) => `c${at}=${String(at % 10).repeat(1000)}`);
const MORE = { maxSendHeaderBlockLength: 262_144, settings: { maxHeaderListSize: 262_144 } };
/** Sixteen of 4 KB, as the value of a field may have. */
const metadata = Object.fromEntries(
  Array.from({ length: 16 }, (_, at) => [
    `x-meta-${at}`,
    String.fromCharCode(97 + at).repeat(4000),
  ]),
);

let usual: RunningDataPlane;
let wide: RunningDataPlane;
/** What targets have received, of the last request. */
let received: http2.IncomingHttpHeaders = {};

async function startHttp2Target(): Promise<number> {
  const server = http2.createServer(MORE);
  server.on("stream", (stream, headers) => {
    received = headers;
    stream.on("error", () => {});
    stream.resume();
    if (headers["content-type"] !== "application/grpc")
      return stream.respond({ ":status": 200, "set-cookie": cookies }, { endStream: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", ...metadata }));
    stream.respond(
      { ":status": 200, "content-type": "application/grpc", ...metadata },
      { waitForTrailers: true },
    );
    stream.end(framed("pong"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  const origin = startOrigin({
    answer: (request) => {
      received = { cookie: request.header("cookie") ?? "" };
      return reply("ok", { headers: cookies.map((each) => `Set-Cookie: ${each}\r\n`).join("") });
    },
  });
  stops.push(() => origin.stop());
  const port = await startHttp2Target();
  const parts: DataPlaneSketch = {
    services: [
      { name: "http1", targets: [{ port: origin.port }] },
      { name: "http2", protocol: "h2c", targets: [{ port }] },
    ],
    routes: [
      { name: "http1", service_id: "http1", paths: ["/http1"] },
      { name: "http2", service_id: "http2", paths: ["/http2"] },
    ],
  };
  usual = await startDataPlane({ listener: { engine: "sluice" }, ...parts });
  wide = await startDataPlane({
    listener: { engine: "sluice", max_header_bytes: 131_072 },
    settings: { limits: { max_response_head_bytes: 131_072 } },
    ...parts,
  });
  stops.push(
    () => usual.stop(),
    () => wide.stop(),
  );
});

/** Head and trailers of a response over HTTP/2, whose message is `pong` if it is one of gRPC. */
async function over2(port: number, headers: http2.OutgoingHttpHeaders, body?: Uint8Array) {
  const session = http2.connect(`http://127.0.0.1:${port}`, MORE);
  session.on("error", () => {});
  const stream = session.request(headers);
  const seen = { head: {} as http2.IncomingHttpHeaders, trailers: {} as http2.IncomingHttpHeaders };
  stream.on("response", (head) => {
    seen.head = head;
  });
  stream.on("trailers", (trailers) => {
    seen.trailers = trailers;
  });
  stream.on("error", () => {});
  stream.resume();
  stream.end(body);
  await once(stream, "close");
  session.destroy();
  return seen;
}

test.each(["/http1", "/http2"])("20 KB of cookies pass both ways to %s", async (path) => {
  const cookie = cookies.join("; ");
  const bytes = `GET ${path} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\n\r\n`;
  const { answers } = await exchange(bytes, { port: usual.port });
  expect(answers[0]).toMatchObject({ status: 200, isComplete: true });
  expect(received.cookie).toBe(cookie);
  for (const each of cookies) expect(answers[0]?.raw).toContain(`: ${each}\r\n`);
  received = {};
  const { head } = await over2(usual.port, { ":path": path, ":method": "GET", cookie: cookies });
  expect(Number(head[":status"])).toBe(200);
  expect(head["set-cookie"]).toEqual(cookies);
  expect(received.cookie).toBe(cookie);
});

test("64 KB of gRPC metadata pass both ways, in head and trailers", async () => {
  const call = {
    ":path": "/http2/S",
    ":method": "POST",
    "content-type": "application/grpc",
    te: "trailers",
  };
  const { head, trailers } = await over2(wide.port, { ...call, ...metadata }, framed("ping"));
  expect(Number(head[":status"])).toBe(200);
  expect(received).toMatchObject(metadata);
  expect(head).toMatchObject(metadata);
  expect(trailers).toMatchObject({ "grpc-status": "0", ...metadata });
  // By default they exceed the limit of the listener.
  const { head: refused } = await over2(usual.port, { ...call, ...metadata }, framed("ping"));
  expect(refused["grpc-status"] ?? refused[":status"]).not.toBe("0");
});
