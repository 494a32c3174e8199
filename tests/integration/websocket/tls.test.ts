// WebSockets over TLS on both sides, and over HTTP/2, where there are none.
// @peculiar/x509 needs it, and brings it.
import "reflect-metadata";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:http2";
import * as x509 from "@peculiar/x509";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { KEY } from "./peer.ts";
import { startScene } from "./scene.ts";

describe("over TLS", () => {
  let gateway: RunningDataPlane;
  let server: Bun.Server<undefined>;
  let cert = "";
  const heard: (readonly [number, string])[] = [];

  beforeAll(async () => {
    const tls = await selfSigned();
    cert = tls.cert;
    server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls,
      fetch: (request, self) => (self.upgrade(request) ? undefined : new Response("no")),
      websocket: {
        message: (socket, message) => {
          socket.send(message);
        },
        close: (_, code, reason) => {
          heard.push([code, reason]);
        },
      },
    });
    gateway = await startDataPlane({
      tls,
      services: [
        {
          name: "app",
          protocol: "https",
          tls: { ca_certificates: cert, server_name: "localhost" },
          targets: [{ port: server.port ?? 0 }],
        },
      ],
      routes: [{ name: "all", service_id: "app" }],
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await server.stop(true);
  });

  async function open() {
    // The option is Bun's own.
    const options = { tls: { rejectUnauthorized: false } } as unknown as string[];
    const socket = new WebSocket(gateway.webSocketUrl, options);
    socket.binaryType = "arraybuffer";
    const messages: unknown[] = [];
    socket.onmessage = (event) => messages.push(event.data);
    await eventually(() => socket.readyState === WebSocket.OPEN);
    return { socket, messages };
  }

  test("messages of all sizes come back", async () => {
    const { socket, messages } = await open();
    const sizes = [0, 1, 1000, 100_000, 5_000_000];
    for (const size of sizes) socket.send(Buffer.alloc(size, size & 255));
    await eventually(() => messages.length === sizes.length);
    expect(messages.map((message) => (message as ArrayBuffer).byteLength)).toEqual(sizes);
    socket.close(1000, "done");
    await eventually(() => heard.length === 1);
    expect(heard.splice(0)).toEqual([[1000, "done"]]);
  });

  test("a client that vanishes is noticed by the target", async () => {
    const { socket } = await open();
    (socket as unknown as { terminate(): void }).terminate();
    await eventually(() => heard.length === 1);
    expect(heard.splice(0)[0]?.[0]).toBe(1006);
    await eventually(() => gateway.board.get(0, "open_websockets") === 0);
  });
});

// RFC 9113 8.2.2: a request with `upgrade` is malformed. 8.1.1 lets a server respond before the stream ends.
test("over HTTP/2 an upgrade is a bad request, and the connection continues", async () => {
  const scene = await startScene();
  const session = connect(scene.gateway.url);
  const upgrade = session.request({
    upgrade: "websocket",
    "sec-websocket-key": KEY,
    "sec-websocket-version": "13",
  });
  const refused = new Promise((resolve, reject) => {
    upgrade.on("response", (head) => resolve(head[":status"]));
    upgrade.on("error", reject);
  });
  expect(await refused).toBe(400);
  expect(scene.target.connections).toBe(0);
  const plain = session.request({ ":path": "/plain" });
  const status = new Promise((resolve) => plain.on("response", (head) => resolve(head[":status"])));
  const origin = await scene.target.connection();
  expect(await origin.head()).toStartWith("GET /plain ");
  origin.write("HTTP/1.1 204 No Content\r\n\r\n");
  expect(await status).toBe(204);
  session.destroy();
  await scene.stop();
});

/** A certificate for localhost, and its key. */
async function selfSigned(): Promise<{ cert: string; key: string }> {
  const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost",
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "localhost" }]),
      new x509.BasicConstraintsExtension(true),
    ],
  });
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${pkcs8.toString("base64")}\n-----END PRIVATE KEY-----\n`,
  };
}
