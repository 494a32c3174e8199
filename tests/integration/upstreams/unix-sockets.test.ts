// Targets behind unix sockets: the same HTTP, connections kept, WebSockets and TLS, and no path in what clients see.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-unix-"));
const path = (name: string) => join(directory, name);
let plain: Origin;
let encrypted: Origin;
let sockets: Bun.Server<undefined>;
let plane: RunningDataPlane;
beforeAll(async () => {
  const tls = await selfSigned("inside.test");
  plain = startOrigin({ unix: path("plain"), answer: (request) => reply(request.header("host")!) });
  encrypted = startOrigin({ unix: path("tls"), tls });
  sockets = Bun.serve({
    unix: path("ws"),
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response("no")),
    websocket: { message: (socket, message) => void socket.send(`echo ${String(message)}`) },
  });
  const at = (name: string) => [{ host: `unix:${path(name)}`, port: null }];
  plane = await startDataPlane({
    services: [
      { name: "plain", targets: at("plain"), host_header: "target" },
      { name: "preserving", targets: at("plain") },
      { name: "ws", targets: at("ws") },
      {
        name: "tls",
        targets: at("tls"),
        protocol: "https",
        tls: { ca_certificates: tls.cert, server_name: "inside.test" },
      },
      {
        name: "tls-name",
        targets: at("tls"),
        protocol: "https",
        tls: { ca_certificates: tls.cert },
        retries: { count: 0 },
      },
      { name: "gone", targets: at("gone"), retries: { count: 0 } },
    ],
    routes: ["plain", "preserving", "ws", "tls", "tls-name", "gone"].map((name) => ({
      name,
      service_id: name,
      hosts: [name],
    })),
  });
});
afterAll(async () => {
  await plane.stop();
  plain.stop();
  encrypted.stop();
  await sockets.stop(true);
  rmSync(directory, { recursive: true });
});

const get = (host: string) => fetch(plane.url, { headers: { host, accept: "text/plain" } });

test("the Host of the target is localhost, and connections are reused", async () => {
  for (let i = 0; i < 3; i++) expect(await (await get("plain")).text()).toBe("localhost");
  expect(plain.connections).toHaveLength(1);
  expect(await (await get("preserving")).text()).toBe("preserving");
});

test("WebSockets work", async () => {
  const socket = new WebSocket(plane.webSocketUrl, { headers: { host: "ws" } } as never);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.onopen = () => socket.send("hello");
  socket.onmessage = (event) => resolve(String(event.data));
  socket.onerror = () => reject(new Error("the WebSocket failed"));
  expect(await promise).toBe("echo hello");
  socket.close();
});

test("TLS is verified for server_name, else for localhost", async () => {
  expect((await get("tls")).status).toBe(200);
  const refused = await get("tls-name");
  expect([refused.status, refused.headers.get("proxy-status")]).toEqual([
    502,
    'sluice; error=tls_certificate_error; details="the target\'s certificate is for another name"',
  ]);
});

test("a missing socket is 502, without its path", async () => {
  const answer = await get("gone");
  expect(answer.status).toBe(502);
  expect(answer.headers.get("proxy-status")).toContain("error=connection_refused");
  const everything = `${await answer.text()}${JSON.stringify([...answer.headers])}`;
  expect(everything).not.toContain(directory);
});
