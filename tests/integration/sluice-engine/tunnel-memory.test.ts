// What a gateway holds of WebSockets on our own engine: of a message that is longer than any limit, and for clients that do not read.
import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import {
  frameBytes,
  handshake,
  ManualTarget,
  opcodes,
  Peer,
  switching,
} from "../websocket/peer.ts";

const linux = needs({ lacks: process.platform === "linux" ? null : "/proc of Linux" });
const MIB = 1024 * 1024;
const CLIENTS = 50;

let gateway: Gateway;
let target: ManualTarget;
let port = 0;
const peers: Peer[] = [];

beforeAll(async () => {
  target = await ManualTarget.start();
  gateway = await startGateway({ workers: 1 });
  port = quietPort();
  await gateway.ok("POST", "/api/v1/listeners", {
    name: "own",
    address: "127.0.0.1",
    port,
    engine: "sluice",
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "origin",
    targets: [{ host: "127.0.0.1", port: target.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "all",
    service_id: "origin",
    paths: [{ type: "prefix", value: "/" }],
  });
});
afterAll(async () => {
  for (const peer of peers) peer.destroy();
  await gateway?.stop();
  await target?.stop();
});

/** Resident bytes of the gateway. */
const resident = (): number =>
  1024 *
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1]);

async function open() {
  const client = await Peer.client(port);
  client.write(handshake());
  const origin = await target.connection();
  origin.write(switching(await origin.head()));
  await client.head();
  peers.push(client, origin);
  return { client, origin };
}

/** The header of one frame of so many bytes; the masking key is 0. */
function longHeader(size: number, mask: boolean): Buffer {
  const header = Buffer.alloc(mask ? 14 : 10);
  header[0] = 0x80 | opcodes.binary;
  header[1] = (mask ? 0x80 : 0) | 127;
  header.writeUInt32BE(size, 6);
  return header;
}

linux.test.each(["client", "target"])(
  "a message of 200 MiB in one frame of the %s passes through a fraction of that",
  async (sender) => {
    const { client, origin } = await open();
    const isClient = sender === "client";
    const [from, to] = isClient ? [client, origin] : [origin, client];
    const header = longHeader(200 * MIB, isClient);
    let received = 0;
    // Its own count: `Peer` would keep the message.
    to.socket.removeAllListeners("data");
    to.socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    const before = resident();
    let most = before;
    from.write(header);
    const piece = Buffer.alloc(MIB, 5);
    for (let sent = 0; sent < 200; sent++) {
      await new Promise((resolve) => from.socket.write(piece, resolve));
      most = Math.max(most, resident());
    }
    await eventually(() => received === 200 * MIB + header.length);
    expect(most - before).toBeLessThan(64 * MIB);
  },
);

linux.test(
  "clients that do not read cost one read each, however much their targets send",
  async () => {
    const before = resident();
    const piece = frameBytes(opcodes.binary, Buffer.alloc(MIB));
    const origins: Peer[] = [];
    for (let count = 0; count < CLIENTS; count++) {
      const { client, origin } = await open();
      client.socket.pause();
      origins.push(origin);
      for (let sent = 0; sent < 30; sent++) origin.write(piece);
    }
    let [last, since] = [-1, 0];
    const waiting = () => origins.reduce((sum, { socket }) => sum + socket.writableLength, 0);
    await eventually(() => {
      since = waiting() === last ? since + 1 : 0;
      last = waiting();
      return since >= 50;
    });
    expect(waiting()).toBeGreaterThan(0);
    expect((resident() - before) / CLIENTS).toBeLessThan(MIB);
  },
);
