// A gateway that stops with connections over TLS on our own engine: each ends as TLS ends, after the request that it has.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;
const port = quietPort();
const gate = Promise.withResolvers<void>();

beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch({ url }) {
      if (url.endsWith("/waits")) await gate.promise;
      return new Response("fine");
    },
  });
  gateway = await startGateway({ workers: 2 });
  await gateway.ok("POST", "/api/v1/listeners", {
    name: "own",
    address: "127.0.0.1",
    port,
    protocol: "https",
    engine: "sluice",
  });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "origin", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
});
afterAll(async () => {
  gate.resolve();
  await gateway?.stop();
  await origin?.stop(true);
});

function open(path: string) {
  const to = { host: "127.0.0.1", port, servername: "a.test", rejectUnauthorized: false };
  const socket: TLSSocket = connectTls(to);
  const seen = { socket, text: "", end: "" };
  socket.on("data", (data: Buffer) => {
    seen.text += data.toString("latin1");
  });
  // Without close_notify there would be an error, and no end.
  socket.on("end", () => {
    seen.end ||= "ended";
  });
  socket.on("error", (error: Error) => {
    seen.end ||= error.message;
  });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`);
  return seen;
}

test("idle connections end, requests in flight first get their response, half a handshake does not delay it", async () => {
  const idle = Array.from({ length: 6 }, () => open("/"));
  await eventually(() => idle.every(({ text }) => text.includes("fine")));
  const busy = Array.from({ length: 6 }, () => open("/waits"));
  await eventually(() => origin.pendingRequests === busy.length);
  const half = connect({ host: "127.0.0.1", port });
  half.on("error", () => {});
  half.write(Buffer.from([22, 3, 1]));
  const stopped = gateway.stop();
  await eventually(() => idle.every(({ end }) => end !== ""));
  expect(busy.map(({ end }) => end)).toEqual(busy.map(() => ""));
  gate.resolve();
  await eventually(() => busy.every(({ end }) => end !== ""));
  expect([...idle, ...busy].map(({ end }) => end)).toEqual([...idle, ...busy].map(() => "ended"));
  for (const { text } of busy) {
    expect(text).toStartWith("HTTP/1.1 200");
    expect(text.toLowerCase()).toContain("\r\nconnection: close\r\n");
    expect(text).toEndWith("fine");
  }
  expect(await stopped).toBe(0);
});
