// Servers on bare sockets of Bun and on our wrapper, and clients that stay: what the scenes of traps are made of; knows no scene.
import { connect, type Socket as NodeSocket } from "node:net";
import { connect as connectTls } from "node:tls";
import {
  PeerSocket,
  type RawSocket,
  type SocketUser,
} from "../../../src/dataplane/server/peer-socket.ts";
import { eventually } from "../../support/poll.ts";

export interface Raw extends RawSocket {
  data: PeerSocket | null;
  end(data?: Uint8Array): void;
  timeout(seconds: number): void;
}

export interface Handlers {
  open?(socket: Raw): void;
  data?(socket: Raw, chunk: Buffer): void;
  end?(socket: Raw): void;
  close?(socket: Raw): void;
  drain?(socket: Raw): void;
  error?(socket: Raw, error: Error): void;
  timeout?(socket: Raw): void;
}

export interface Listening {
  readonly port: number;
  reload(options: { readonly socket: Handlers }): void;
  stop(force: boolean): void;
}

const stops: (() => void)[] = [];

/** Ends what a scene has started. */
export function stopAll(): void {
  for (const stop of stops.splice(0).reverse()) stop();
}

/** `stop` runs at the end of the scene. */
export function atEnd(stop: () => void): void {
  stops.push(stop);
}

export function listen(handlers: Handlers, tls: object | null = null): Listening {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    allowHalfOpen: true,
    ...(tls === null ? {} : { tls }),
    socket: { data() {}, ...handlers },
  } as unknown as Parameters<typeof Bun.listen>[0]) as unknown as Listening;
  stops.push(() => server.stop(true));
  return server;
}

/** Each socket's events go to its own wrapper, as in `SocketListener`. */
const byData: Handlers = {
  data: (raw, chunk) => raw.data?.clientSent(chunk),
  end: (raw) => raw.data?.clientEnded(),
  close: (raw) => raw.data?.clientClosed(false),
  drain: (raw) => raw.data?.clientDrained(),
  error: (raw) => raw.data?.clientClosed(true),
};

/** Handlers whose sockets are wrapped; `user` gets their events. */
export function wrapping(
  user: (socket: PeerSocket) => Partial<SocketUser>,
  sockets: PeerSocket[] = [],
): Handlers {
  return {
    ...byData,
    open(raw) {
      const all: SocketUser = { received() {}, drained() {}, ended() {}, closed() {} };
      const socket: PeerSocket = new PeerSocket(raw, {
        received: (chunk) => all.received(chunk),
        drained: () => all.drained(),
        ended: () => all.ended(),
        closed: (isReset) => all.closed(isReset),
      });
      Object.assign(all, user(socket));
      raw.data = socket;
      sockets.push(socket);
    },
  };
}

/** A server of such sockets. */
export function wrapped(
  user: (socket: PeerSocket) => Partial<SocketUser>,
  tls: object | null = null,
) {
  const sockets: PeerSocket[] = [];
  const server = listen(wrapping(user, sockets), tls);
  return { server, port: server.port, sockets };
}

/** A client that never closes by itself. */
export function client(port: number, options: { readonly tls?: boolean } = {}) {
  const to = { host: "127.0.0.1", port, allowHalfOpen: true };
  const socket = (
    options.tls === true ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to)
  ) as NodeSocket;
  const pieces: Buffer[] = [];
  const seen = {
    socket,
    isClosed: false,
    hasEnded: false,
    get bytes() {
      return pieces.reduce((sum, { length }) => sum + length, 0);
    },
    get text() {
      return Buffer.concat(pieces).toString("latin1");
    },
  };
  socket.on("data", (chunk: Buffer) => pieces.push(chunk));
  socket.on("end", () => {
    seen.hasEnded = true;
  });
  socket.on("close", () => {
    seen.isClosed = true;
  });
  socket.on("error", () => {});
  stops.push(() => socket.destroy());
  return seen;
}

/** A client that has sent one byte, behind its handshake. */
export function knocking(port: number, options: { readonly tls?: boolean } = {}) {
  const peer = client(port, options);
  if (options.tls === true) peer.socket.on("secureConnect", () => peer.socket.write("x"));
  else peer.socket.write("x");
  return peer;
}

/** Turns of the event loop. */
export const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((next) => setImmediate(next));
};

/** Exchanges over a connection of their own: what would have happened meanwhile has happened. */
export async function exchanges(count: number): Promise<void> {
  const echo = listen({ data: (socket, chunk) => void socket.write(chunk) });
  const peer = client(echo.port);
  for (let done = 1; done <= count; done++) {
    peer.socket.write("x");
    await eventually(() => peer.bytes === done, { intervalMs: 1 });
  }
  peer.socket.destroy();
}
