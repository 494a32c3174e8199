// A client's socket, and what handles its events; knows neither TLS nor HTTP.
import type { Socket } from "bun";
import type { Side } from "../stream/pipe.ts";

/** A client's socket as its owners see it. */
export type ClientSocket = Side &
  Pick<Socket<unknown>, "remoteAddress" | "remotePort" | "localPort" | "localAddress">;

/** Handles the events of a client's socket; the socket may get another owner later. */
export interface SocketOwner {
  clientSent(chunk: Buffer): void;
  clientDrained(): void;
  /** The client has sent FIN. */
  clientEnded(): void;
  /** `isReset`: the connection broke instead of being closed. */
  clientClosed(isReset: boolean): void;
}

/** Owns sockets of which nothing is read: closed at once, or gone before they were accepted. */
const NO_OWNER: SocketOwner = {
  clientSent() {},
  clientDrained() {},
  clientEnded() {},
  clientClosed() {},
};

/** A socket that a port of ours has accepted. */
export interface AcceptedSocket extends ClientSocket {
  data: SocketOwner;
  setNoDelay(on: boolean): void;
  setKeepAlive(on: boolean, delayMs: number): void;
}

/** Ends the connection of an owner that threw: Bun only calls `error` then, and leaves the socket open. */
export function abandon(socket: { data: SocketOwner; terminate(): void }): void {
  const owner = socket.data;
  socket.data = NO_OWNER;
  // What was counted for it must be so no more.
  owner.clientClosed(true);
  socket.terminate();
}

/** The handlers of such a port. `accept` gives the socket its owner. */
export const acceptedHandlers = (accept: (socket: AcceptedSocket) => void) => ({
  open(socket: AcceptedSocket) {
    socket.data = NO_OWNER;
    // The client had reset the connection before it was accepted: Bun has no address then, against its types.
    if ((socket.remoteAddress as string | undefined) === undefined) return void socket.terminate();
    try {
      accept(socket);
    } catch {
      abandon(socket);
    }
    return undefined;
  },
  data: (socket: AcceptedSocket, chunk: Buffer) => socket.data.clientSent(chunk),
  drain: (socket: AcceptedSocket) => socket.data.clientDrained(),
  end: (socket: AcceptedSocket) => socket.data.clientEnded(),
  close: (socket: AcceptedSocket, error: unknown) =>
    socket.data.clientClosed(error instanceof Error),
  error: abandon,
});
