// Scenes of traps about a connection's time, its end under TLS and its handlers.
import { createServer } from "node:tls";
import type { PeerSocket } from "../../../src/dataplane/server/peer-socket.ts";
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";
import { startTlsRelay } from "../../support/tls-relay.ts";
import type { Scene } from "./trap-scenes.ts";
import { atEnd, client, knocking, listen, type Raw, wrapped, wrapping } from "./trap-sockets.ts";

const certificate = await selfSigned("localhost");

const timing: readonly Scene[] = [
  {
    trap: 7,
    name: "bare: a timeout of two seconds is late by more than one",
    async run() {
      let firedAt = 0;
      let setAt = 0;
      const { port } = listen({
        data(socket) {
          setAt = performance.now();
          socket.timeout(2);
        },
        timeout() {
          firedAt = performance.now();
        },
      });
      knocking(port);
      await eventually(() => firedAt > 0);
      return firedAt - setAt > 3000;
    },
    expected: true,
  },
];

/** Events that a client over TLS has of a body that ends with the connection; `isCut`: without close_notify. */
async function endOfBody(isCut: boolean): Promise<string[]> {
  const server = createServer({ ...certificate }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("half");
      socket.once("data", () => (isCut ? relay.cut() : socket.end()));
    });
  }).listen(0, "127.0.0.1");
  await eventually(() => server.listening);
  const relay = await startTlsRelay((server.address() as { port: number }).port);
  atEnd(() => {
    relay.stop();
    server.close();
  });
  const events: string[] = [];
  void Bun.connect({
    hostname: "127.0.0.1",
    port: relay.port,
    tls: { rejectUnauthorized: false },
    socket: {
      handshake: (socket) => void socket.write("first"),
      data(socket, chunk) {
        events.push(`data ${chunk.toString()}`);
        socket.write("second");
      },
      end: () => void events.push("end"),
      error: (_, error) => void events.push(`error ${error.message}`),
      close: (_, error) => void events.push(`close ${error?.message ?? ""}`),
    },
  });
  await eventually(() => events.some((event) => event.startsWith("close")));
  return events;
}

const closing: readonly Scene[] = [true, false].map((isCut) => ({
  trap: 8,
  name: `bare: a TLS stream that ends ${isCut ? "without" : "with"} close_notify looks like one that ended well`,
  run: () => endOfBody(isCut),
  expected: ["data half", "end", "close "],
}));

const reloading: readonly Scene[] = [
  {
    trap: 9,
    name: "bare: reload gives open connections the new handlers",
    async run() {
      const seen: string[] = [];
      const handlers = (name: string) => ({
        data: (_: Raw, chunk: Buffer) => void seen.push(`${name} ${chunk.toString()}`),
      });
      const server = listen(handlers("old"));
      const peer = client(server.port);
      peer.socket.write("1");
      await eventually(() => seen.length === 1);
      server.reload({ socket: handlers("new") });
      peer.socket.write("2");
      await eventually(() => seen.length === 2);
      return seen;
    },
    expected: ["old 1", "new 2"],
  },
  {
    trap: 9,
    name: "ours: a connection keeps its owner, and the next one has the new one",
    async run() {
      const seen: string[] = [];
      const owner = (name: string) => (_: PeerSocket) => ({
        received: (chunk: Buffer) => void seen.push(`${name} ${chunk.toString()}`),
        ended: () => void seen.push(`${name} ended`),
      });
      const { server } = wrapped(owner("old"));
      const first = client(server.port);
      first.socket.write("1");
      await eventually(() => seen.length === 1);
      server.reload({ socket: wrapping(owner("new")) });
      first.socket.write("2");
      await eventually(() => seen.length === 2);
      client(server.port).socket.write("3");
      await eventually(() => seen.length === 3);
      first.socket.end();
      await eventually(() => seen.length === 4);
      return seen;
    },
    expected: ["old 1", "old 2", "new 3", "old ended"],
  },
];

export const connectionScenes: readonly Scene[] = [...timing, ...closing, ...reloading];
