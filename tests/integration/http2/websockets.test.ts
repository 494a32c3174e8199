// WebSockets over HTTP/2, and lengths: RFC 8441, the upgrade, and exact lengths.
import { afterAll, beforeAll, expect, test } from "bun:test";
import http2 from "node:http2";
import { selfSigned } from "../../support/certificate.ts";
import { curl } from "../../support/curl.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { closePayload, frameBytes, opcodes } from "../websocket/peer.ts";

const big = Buffer.alloc(5_000_000, 97);
const origin = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request, server) {
    if (new URL(request.url).pathname === "/big") return new Response(big);
    return server.upgrade(request) ? undefined : new Response("no", { status: 403 });
  },
  websocket: { message: (socket, message) => void socket.send(message) },
});
let plane: RunningDataPlane;
beforeAll(async () => {
  plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [{ name: "echo", targets: [{ port: origin.port ?? 0 }] }],
    routes: [{ name: "all", service_id: "echo" }],
  });
});
afterAll(async () => {
  await plane.stop();
  await origin.stop(true);
});

test.each(["websocket", "other"])("extended CONNECT for %s over HTTP/2", async (protocol) => {
  const session = http2.connect(`https://localhost:${plane.port}`, { rejectUnauthorized: false });
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  const stream = session.request({
    ":method": "CONNECT",
    ":protocol": protocol,
    ":path": "/",
    ":scheme": "https",
    ":authority": "localhost",
    "sec-websocket-version": "13",
  });
  let received = Buffer.alloc(0);
  let status: unknown = 0;
  stream.on("response", (headers) => {
    status = headers[":status"];
  });
  stream.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  await eventually(() => status !== 0);
  expect(status).toBe(protocol === "websocket" ? 200 : 400);
  if (protocol === "websocket") {
    stream.write(frameBytes(opcodes.text, "hello", { mask: true }));
    await eventually(() => received.toString("latin1").includes("hello"));
    stream.write(frameBytes(opcodes.close, closePayload(1000), { mask: true }));
    await eventually(() => stream.closed);
  }
  session.destroy();
});

test.each(["--http1.1", "--http2"])("5 MB keep their length: curl %s", async (version) => {
  const answer = await curl(`https://127.0.0.1:${plane.port}/big`, [version]);
  expect([answer.size, answer.header("content-length")]).toEqual([5_000_000, "5000000"]);
});
