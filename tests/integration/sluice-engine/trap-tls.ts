// Scenes of TLS on accepted plain sockets: what Bun's undocumented names for it do, and what our engine's socket does over them.
import { connect, type ConnectionOptions } from "node:tls";
import {
  createTlsContext,
  startTls,
  type TlsSocket,
} from "../../../src/dataplane/server/bun-tls.ts";
import { PeerSocket, type SocketUser } from "../../../src/dataplane/server/peer-socket.ts";
import { tlsProblem } from "../../../src/dataplane/server/tls-self-test.ts";
import type { SocketOwner } from "../../../src/dataplane/listener/client-socket.ts";
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";
import type { Scene } from "./trap-scenes.ts";
import { atEnd, exchanges, knocking, listen, type Raw } from "./trap-sockets.ts";

const certificate = await selfSigned("localhost");
const big = Buffer.alloc(20_000_000, "b");

interface Upgrade {
  readonly context?: object;
  readonly protocols?: readonly string[];
  readonly clientCertificate?: "none" | "request" | "require";
  /** The handshake is over. */
  ended?(socket: TlsSocket, isDone: boolean): void;
}

/** A server whose connections become TLS after their first bytes; `user` gets the events of each. */
function upgrading(user: (socket: PeerSocket) => Partial<SocketUser>, upgrade: Upgrade = {}) {
  const { protocols = null, clientCertificate = "none" } = upgrade;
  const context = createTlsContext({ ...certificate, ...upgrade.context });
  const sockets: PeerSocket[] = [];
  let plainBytes = 0;
  const begin = (raw: Raw, received: Buffer) => {
    const nothing = () => {};
    const events = { clientSent: nothing, clientDrained: nothing, clientEnded: nothing };
    startTls(raw as never, {
      context,
      protocols,
      clientCertificate,
      received,
      owner: {
        ...events,
        clientClosed: nothing,
        handshake(secured, isDone) {
          upgrade.ended?.(secured, isDone);
          if (!isDone) return;
          const all: SocketUser = { received() {}, drained() {}, ended() {}, closed() {} };
          const socket = new PeerSocket(secured, {
            received: (chunk) => all.received(chunk),
            drained: () => all.drained(),
            ended: () => all.ended(),
            closed: (isReset) => all.closed(isReset),
          });
          Object.assign(all, user(socket));
          secured.data = socket;
          sockets.push(socket);
        },
      },
    });
  };
  const seen = new WeakSet<object>();
  const server = listen({
    data(raw, chunk) {
      const owner = raw.data as SocketOwner | null;
      if (owner !== null && owner !== undefined) {
        plainBytes += chunk.length;
        return owner.clientSent(chunk);
      }
      if (seen.has(raw)) throw new Error("the first bytes came twice");
      seen.add(raw);
      begin(raw, chunk);
    },
    close: (raw) => (raw.data as SocketOwner | null)?.clientClosed(false),
  });
  return {
    port: server.port,
    sockets,
    get plainBytes() {
      return plainBytes;
    },
  };
}

/** What a client sees of a handshake, and of `hello` after it. */
async function ask(port: number, options: ConnectionOptions = {}) {
  const { promise, resolve } = Promise.withResolvers<object>();
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
  socket.on("secureConnect", () => socket.write("hello"));
  socket.on("data", (data: Buffer) =>
    resolve({ protocol: socket.alpnProtocol, version: socket.getProtocol(), echo: String(data) }),
  );
  socket.on("error", (error: Error) => resolve({ error: error.message.split(":").at(-1) }));
  socket.on("close", () => resolve({ error: "closed" }));
  atEnd(() => socket.destroy());
  return await promise;
}

const echo = (socket: PeerSocket) => ({ received: (chunk: Buffer) => void socket.write(chunk) });

const handshakes: readonly Scene[] = [
  {
    trap: 10,
    name: "bare: without the bytes that were read the handshake waits",
    async run() {
      const context = createTlsContext(certificate);
      const ended: boolean[] = [];
      const { port } = listen({
        data(raw) {
          if (raw.data !== undefined) return;
          Object.assign(raw, { data: null });
          (raw as unknown as { upgradeTLS(options: object): void }).upgradeTLS({
            isServer: true,
            secureContext: context.native,
            tls: {},
            socket: { data() {}, handshake: (_: unknown, isDone: boolean) => ended.push(isDone) },
          });
        },
      });
      const peer = knocking(port, { tls: true });
      await exchanges(100);
      return { ended, bytes: peer.bytes };
    },
    expected: { ended: [], bytes: 0 },
  },
  {
    trap: 10,
    name: "ours: name, protocol, version and identity of a handshake",
    async run() {
      const facts: unknown[] = [];
      const { port } = upgrading(echo, {
        protocols: ["own"],
        clientCertificate: "request",
        context: { ca: certificate.cert },
        ended: (socket, isDone) =>
          facts.push([
            isDone,
            socket.getServername(),
            socket.alpnProtocol,
            socket.getTLSVersion(),
            socket.authorized,
            socket.isSessionReused(),
          ]),
      });
      const options = { servername: "Own.Test", ALPNProtocols: ["other", "own"] };
      const seen = [
        await ask(port, options),
        await ask(port, { ...options, ...certificate, maxVersion: "TLSv1.2" }),
      ];
      return { facts, seen };
    },
    expected: {
      facts: [
        [true, "Own.Test", "own", "TLSv1.3", false, false],
        [true, "Own.Test", "own", "TLSv1.2", true, false],
      ],
      seen: [
        { protocol: "own", version: "TLSv1.3", echo: "hello" },
        { protocol: "own", version: "TLSv1.2", echo: "hello" },
      ],
    },
  },
  {
    trap: 10,
    name: "ours: the version and the certificate that a context asks for",
    async run() {
      const ended: boolean[] = [];
      const { port } = upgrading(echo, {
        clientCertificate: "require",
        context: { ca: certificate.cert, minVersion: "TLSv1.3" },
        ended: (_, isDone) => ended.push(isDone),
      });
      return {
        old: await ask(port, { ...certificate, maxVersion: "TLSv1.2" }),
        none: await ask(port),
        both: await ask(port, certificate),
        ended,
      };
    },
    expected: {
      old: { error: "TLSV1_ALERT_PROTOCOL_VERSION" },
      none: { error: "TLSV1_ALERT_CERTIFICATE_REQUIRED" },
      both: { protocol: false, version: "TLSv1.3", echo: "hello" },
      ended: [false, false, true],
    },
  },
  {
    trap: 10,
    name: "ours: the self-test passes",
    run: () => tlsProblem(certificate),
    expected: null,
  },
];

const streams: readonly Scene[] = [
  {
    trap: 1,
    name: "ours, TLS in place: FIN, and the end of a client that stays",
    async run() {
      let isClosed = false;
      const { port, sockets } = upgrading((socket) => ({
        received() {
          socket.writeText("bye");
          socket.finish(1000);
        },
        closed() {
          isClosed = true;
        },
      }));
      const peer = knocking(port, { tls: true });
      await eventually(() => peer.hasEnded);
      const closed = [1000, 2999, 3000].map((now) => {
        sockets[0]?.tick(now);
        return isClosed;
      });
      // Nothing receives it any more.
      peer.socket.write("y");
      await eventually(() => peer.isClosed);
      return { closed, text: peer.text };
    },
    expected: { closed: [false, false, true], text: "bye" },
  },
  {
    trap: 1,
    name: "ours, TLS in place: what the kernel does not take is sent before FIN",
    async run() {
      const { port } = upgrading((socket) => ({
        received() {
          socket.write(big);
          socket.finish(0);
        },
      }));
      const peer = knocking(port, { tls: true });
      await eventually(() => peer.hasEnded);
      return peer.bytes;
    },
    expected: big.length,
  },
  {
    trap: 3,
    name: "ours, TLS in place: what a client sends arrives once, and the plain socket sees the rest",
    async run() {
      let bytes = 0;
      let isRight = true;
      const server = upgrading(() => ({
        received(chunk) {
          bytes += chunk.length;
          isRight &&= chunk.every((byte) => byte === 98);
        },
      }));
      const client = connect({ host: "127.0.0.1", port: server.port, rejectUnauthorized: false });
      atEnd(() => client.destroy());
      client.write(big);
      await eventually(() => bytes >= big.length);
      return { bytes, isRight, isCiphertext: server.plainBytes > bytes };
    },
    expected: { bytes: big.length, isRight: true, isCiphertext: true },
  },
  {
    trap: 5,
    name: "ours, TLS in place: destroy within a handler reports closed before it returns, once",
    async run() {
      const order: unknown[] = [];
      const { port } = upgrading((socket) => ({
        received() {
          socket.destroy();
          order.push("returned", socket.writeText("nothing"));
          socket.destroy();
        },
        closed: () => void order.push("closed"),
      }));
      const peer = knocking(port, { tls: true });
      await eventually(() => peer.isClosed);
      return { order, bytes: peer.bytes };
    },
    expected: { order: ["closed", "returned", true], bytes: 0 },
  },
  {
    trap: 6,
    name: "ours, TLS in place: a client that has ended still gets a response",
    async run() {
      const events: string[] = [];
      const { port } = upgrading((socket) => ({
        received: () => void events.push("received"),
        ended() {
          events.push("ended");
          socket.writeText("late");
          socket.finish(0);
        },
      }));
      const peer = knocking(port, { tls: true });
      await eventually(() => events.length === 1);
      peer.socket.end();
      await eventually(() => peer.hasEnded);
      return { events, text: peer.text };
    },
    expected: { events: ["received", "ended"], text: "late" },
  },
];

export const tlsScenes: readonly Scene[] = [...handshakes, ...streams];
