// Clients that do not read long responses, and targets that do not read long requests: what a gateway holds for each.
import { afterAll, beforeAll, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { encode } from "../../support/h2-client.ts";
import { frame, GET as H2_FIELDS, uint32 } from "../../support/h2-wire.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";

const CLIENTS = 100;
/** Bytes of memory for each, besides those of the system. */
const MOST_EACH = 131_072;

let gateway: Gateway;
let origin: Server;
/** Without TLS and with it. */
const ports = { plain: 0, TLS: 0 };
const targets: Socket[] = [];
const clients: Socket[] = [];

beforeAll(async () => {
  origin = createServer({ allowHalfOpen: true }, (socket) => {
    targets.push(socket);
    socket.on("error", () => {});
    socket.once("data", (head: Buffer) => {
      if (head.toString().startsWith("POST")) return void socket.pause();
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
      pour(socket);
    });
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port: originPort } = origin.address() as { port: number };
  gateway = await startGateway({ workers: 1 });
  for (const kind of ["plain", "TLS"] as const) {
    ports[kind] = quietPort();
    await gateway.ok("POST", "/api/v1/listeners", {
      name: kind,
      address: "127.0.0.1",
      port: ports[kind],
      engine: "sluice",
      protocol: kind === "TLS" ? "https" : "http",
    });
  }
  await gateway.ok("POST", "/api/v1/services", {
    name: "origin",
    targets: [{ host: "127.0.0.1", port: originPort }],
  });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "all",
    service_id: "origin",
    paths: [{ type: "prefix", value: "/" }],
  });
});
afterAll(async () => {
  for (const socket of [...clients, ...targets]) socket.destroy();
  origin?.close();
  await gateway?.stop();
});

const piece = Buffer.alloc(65_536, "x");

/** Writes for as long as the peer reads. */
function pour(socket: Socket): void {
  while (socket.write(piece));
  socket.once("drain", () => pour(socket));
}

/** Resident bytes of the gateway. */
const resident = (): number =>
  1024 *
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1]);

/** Resolves when all bytes stand still. */
async function quiet(bytes: () => number): Promise<void> {
  let [last, since] = [-1, 0];
  await eventually(() => {
    const now = bytes();
    since = now === last ? since + 1 : 0;
    last = now;
    return now > 0 && since >= 20;
  });
}

function open(kind: keyof typeof ports, version: string, head: string | Buffer): Socket {
  const to = { port: ports[kind], host: "127.0.0.1" };
  const protocols = version === "HTTP/2" ? { ALPNProtocols: ["h2"] } : {};
  const socket =
    kind === "TLS" ? connectTls({ ...to, ...protocols, rejectUnauthorized: false }) : connect(to);
  socket.on("error", () => {});
  socket.pause();
  socket.write(head);
  clients.push(socket);
  return socket;
}

const sent = () => targets.reduce((sum, socket) => sum + socket.bytesWritten, 0);

const GET = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n";

/** A client of HTTP/2 whose windows are as large as there are, and its request. */
const H2_GET = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  frame(4, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(2 ** 31 - 1)])),
  frame(8, 0, 0, uint32(2 ** 31 - 65_536)),
  frame(1, 5, 1, encode(H2_FIELDS)),
]);

test.each([
  ["responses", "plain", "HTTP/1.1", GET],
  ["requests", "plain", "HTTP/1.1", POST],
  ["responses", "plain", "HTTP/2", H2_GET],
  ["responses", "TLS", "HTTP/1.1", GET],
  ["requests", "TLS", "HTTP/1.1", POST],
  ["responses", "TLS", "HTTP/2", H2_GET],
] as const)(
  "of %s over %s with %s that nobody reads, the gateway holds 128 KB each",
  async (kind, over, version, head) => {
    /** Calls `check` while no client, or target, reads. */
    const stall = async (count: number, check: () => Promise<unknown>) => {
      const sockets = Array.from({ length: count }, () => open(over, version, head));
      if (kind === "requests") for (const socket of sockets) pour(socket);
      const written = () => sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
      await quiet(kind === "responses" ? sent : written);
      await check();
      for (const socket of clients.splice(0)) socket.resetAndDestroy();
      // All exchanges end with their clients.
      await eventually(async () => (await gateway.ok("GET", "/api/v1/stats")).now.in_flight === 0);
    };
    // The code is compiled, and buffers that all share are there.
    await stall(2, async () => {});
    const before = resident();
    // What was passed on before is free, but the allocator returns it to the system a moment later.
    await stall(CLIENTS, () => eventually(() => (resident() - before) / CLIENTS <= MOST_EACH));
  },
);
