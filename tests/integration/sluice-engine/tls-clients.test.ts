// Clients that begin TLS on our own engine and do not end it: each is gone in time, costs no slot, and learns why where TLS can say it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { ask } from "../listeners/world.ts";

const SLOTS = 8;
const PREREAD_MS = 1500;

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;
let hello: Buffer;
const ports = { direct: 0, proxied: 0 };

beforeAll(async () => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("fine") });
  gateway = await startGateway({ workers: 2 });
  for (const name of ["direct", "proxied"] as const) {
    ports[name] = quietPort();
    await gateway.ok("POST", "/api/v1/listeners", {
      name,
      address: "127.0.0.1",
      port: ports[name],
      protocol: "https",
      engine: "sluice",
      max_connections: SLOTS,
      ...(name === "proxied" ? { proxy_protocol: true, trusted_proxies: ["127.0.0.1"] } : {}),
    });
  }
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "origin", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
  await gateway.ok("PATCH", "/api/v1/settings", { limits: { preread_timeout: PREREAD_MS } });
  hello = await firstBytes();
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
});

/** The ClientHello of a client. */
async function firstBytes(): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (data: Buffer) => {
      resolve(data);
      socket.destroy();
      server.close();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as { port: number };
  connectTls({ host: "127.0.0.1", port, servername: "a.test" }).on("error", () => {});
  return await promise;
}

/** Sends bytes, and resolves with what came until the connection is gone. It never closes by itself. */
function stay(port: number, send: (socket: Socket) => void): Promise<Buffer> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    socket.on("connect", () => send(socket));
    socket.on("data", (data: Buffer) => pieces.push(data));
    socket.on("error", () => {});
    // Bun closes what it has ended, at once.
    socket.on("end", () => socket.destroy());
    socket.on("close", () => resolve(Buffer.concat(pieces)));
  });
}

/** A connection with one response, which stays; null: refused. */
function hold(kind: keyof typeof ports): Promise<Socket | null> {
  const raw = connect({ host: "127.0.0.1", port: ports[kind] });
  if (kind === "proxied") raw.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
  const secured = connectTls({ socket: raw, rejectUnauthorized: false });
  secured.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  return new Promise((resolve) => {
    for (const socket of [raw, secured]) {
      socket.on("error", () => {});
      socket.on("close", () => resolve(null));
    }
    secured.once("data", () => resolve(raw));
  });
}

/** A byte now and then, for ever. */
function drip(socket: Socket, bytes: Buffer): void {
  let at = 0;
  const timer = setInterval(() => socket.write(bytes.subarray(at, ++at)), 100);
  socket.on("close", () => clearInterval(timer));
}

const kinds: readonly (readonly [string, keyof typeof ports, (socket: Socket) => void])[] = [
  ["says nothing", "direct", () => {}],
  ["sends half a ClientHello", "direct", (socket) => socket.write(hello.subarray(0, 700))],
  ["sends one byte by byte", "direct", (socket) => drip(socket, hello)],
  ["sends a ClientHello and nothing else", "direct", (socket) => socket.write(hello)],
  [
    "sends a ClientHello, and then a record byte by byte",
    "direct",
    (socket) => {
      socket.write(hello);
      drip(socket, Buffer.concat([Buffer.from([22, 3, 3, 64, 0]), Buffer.alloc(16_384)]));
    },
  ],
  ["sends half a PROXY header", "proxied", (socket) => socket.write("PROXY TCP4 192.0")],
  [
    "sends a PROXY header and nothing else",
    "proxied",
    (socket) => socket.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"),
  ],
];

describe("a client that", () => {
  test.each(kinds)("%s is gone, and its slot is free", async (_, kind, send) => {
    // Until no slot belongs to a connection of the test before.
    await eventually(async () => {
      const began = performance.now();
      await Promise.all(Array.from({ length: SLOTS }, () => stay(ports[kind], send)));
      return performance.now() - began > PREREAD_MS;
    });
    // As many at once as there are slots, and not one more.
    const held = await eventually(async () => {
      const all = await Promise.all(Array.from({ length: SLOTS }, () => hold(kind)));
      if (all.every((socket) => socket !== null)) return all;
      for (const socket of all) socket?.destroy();
      return null;
    });
    expect(await hold(kind)).toBeNull();
    for (const socket of held) socket?.destroy();
  });
});

/** The description of a fatal alert without encryption. */
const alertIn = (bytes: Buffer) => (bytes.length === 7 && bytes[0] === 21 ? bytes[6] : null);

test.each([
  ["a ClientHello that cannot be read", () => Buffer.from([22, 3, 1, 0, 4, 1, 0, 0, 0]), 50],
  ["another message", () => Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), 50],
  ["no TLS", () => Buffer.from("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), null],
] as const)("%s is refused at once, with the alert %p", async (_, bytes, alert) => {
  expect(alertIn(await stay(ports.direct, (socket) => socket.write(bytes())))).toBe(alert);
});

test("garbage behind a ClientHello ends the handshake at once", async () => {
  const bytes = await stay(ports.direct, (socket) => {
    socket.write(hello);
    socket.once("data", () => socket.write("neither a record nor an alert"));
  });
  // The server's flight, and an alert.
  expect(bytes[0]).toBe(22);
});

test.each([
  ["an old version", { maxVersion: "TLSv1.1", minVersion: "TLSv1" }, "PROTOCOL_VERSION"],
  [
    "protocols that are none of the listener's",
    { ALPNProtocols: ["foo"] },
    "NO_APPLICATION_PROTOCOL",
  ],
] as const)("a client with %s gets the alert", async (_, options, alert) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const to = { host: "127.0.0.1", port: ports.direct, rejectUnauthorized: false };
  const socket = connectTls({ ...to, ...options } as Parameters<typeof connectTls>[0]);
  socket.on("error", (error: Error) => resolve(error.message));
  socket.on("secureConnect", () => resolve("done"));
  expect(await promise).toContain(alert);
  socket.destroy();
});

test("handshakes are counted, done and failed", async () => {
  const counted = async () => {
    const text = await (await gateway.api("GET", "/metrics")).text();
    const of = (result: string) => {
      const line = `sluice_tls_handshakes_total{listener="direct",result="${result}"} `;
      return Number(
        text
          .split("\n")
          .find((one) => one.startsWith(line))
          ?.slice(line.length) ?? 0,
      );
    };
    return { ok: of("ok"), failed: of("failed") };
  };
  const before = await counted();
  expect((await ask(ports.direct)).text).toStartWith("HTTP/1.1 200");
  await stay(ports.direct, (socket) => {
    socket.write(hello);
    socket.once("data", () => socket.destroy());
  });
  await eventually(async () => {
    const { ok, failed } = await counted();
    return ok === before.ok + 1 && failed === before.failed + 1;
  });
});
