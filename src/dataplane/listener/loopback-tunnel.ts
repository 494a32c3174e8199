// Tunnels a client's bytes to a server of this worker on 127.0.0.1 and back; knows neither TLS nor HTTP.
import type { Socket, TCPSocketConnectOptions } from "bun";
import { Pipe, type Side } from "../stream/pipe.ts";
import type { ConnectionInfo, KnownConnections } from "./connection-info.ts";
import { type HeadWatch, headTimeout } from "./head-watch.ts";

/** A client's socket as its owners see it. */
export type ClientSocket = Side &
  Pick<Socket<unknown>, "remoteAddress" | "remotePort" | "localPort" | "localAddress" | "end"> & {
    /** Which Bun's types name and do not declare. */
    close(): void;
  };

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
export const NO_OWNER: SocketOwner = {
  clientSent() {},
  clientDrained() {},
  clientEnded() {},
  clientClosed() {},
};

/** Whether the client had reset the connection before it was accepted: Bun has no address then, against its types. */
export const isGone = ({ remoteAddress }: { readonly remoteAddress: string | undefined }) =>
  remoteAddress === undefined;

/** A server on 127.0.0.1 and the connections that it accepts. */
export interface Destination {
  readonly port: number;
  readonly known: KnownConnections;
}

/** Client bytes buffered until the inner connection is open. */
const MAX_BUFFERED_BYTES = 65_536;
/** Time for the client to close after the gateway has sent everything. */
const LINGER_MS = 5000;
/** Silence after which an outdated connection is closed, and the longest time that it stays open. */
const OUTDATED_IDLE_MS = 500;
const OUTDATED_MS = 10_000;

export interface LoopbackTunnelOptions {
  readonly destination: Destination;
  readonly info: ConnectionInfo;
  readonly now: () => number;
  /** The gateway refuses the client, with the reason. */
  readonly refused: (reason: string) => void;
  /** Runs once, when both sockets are closed or closing. */
  readonly closed: (connection: LoopbackTunnel) => void;
}

export class LoopbackTunnel implements SocketOwner {
  readonly #client: ClientSocket;
  readonly #options: LoopbackTunnelOptions;
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  #server: Socket<LoopbackTunnel> | null = null;
  #sourcePort = 0;
  #pipe: Pipe | null = null;
  #clientHasEnded = false;
  /** The gateway has sent 408 and drops what the client still sends. */
  #isRefused = false;
  #isClosed = false;
  /** When to close a silent client. */
  #deadline = Number.POSITIVE_INFINITY;
  /** When the connection must be closed because it is outdated. */
  #outdatedUntil = Number.POSITIVE_INFINITY;

  /** Connects at once, or after the head of the first request. */
  constructor(client: ClientSocket, buffered: Buffer, options: LoopbackTunnelOptions) {
    this.#client = client;
    this.#options = options;
    if (options.info.heads === null) this.#connect();
    if (buffered.length > 0) this.clientSent(buffered);
  }

  #connect(): void {
    const { destination } = this.#options;
    const connecting = {
      hostname: "127.0.0.1",
      port: destination.port,
      allowHalfOpen: true,
      data: this,
      socket: serverHandlers,
    } as unknown as TCPSocketConnectOptions<LoopbackTunnel>;
    // `connectError` reports the same failure; `close` is idempotent.
    Bun.connect(connecting).catch(() => this.close());
  }

  clientSent(chunk: Buffer): void {
    const { heads } = this.#options.info;
    if (heads === null) this.#forward(chunk);
    else if (!this.#isRefused) this.#watch(heads, chunk);
  }

  #watch(heads: HeadWatch, chunk: Buffer): void {
    const wasHolding = heads.isHolding;
    const bytes = heads.pass(chunk, this.#options.now());
    if (bytes === null) return;
    if (wasHolding) this.#connect();
    this.#forward(bytes);
  }

  #forward(chunk: Buffer): void {
    if (this.#pipe !== null) return this.#pipe.clientSent(chunk);
    this.#buffered.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES) this.#client.pause();
  }

  clientDrained(): void {
    this.#pipe?.clientDrained();
    this.#closeIfOver();
  }

  clientEnded(): void {
    this.#clientHasEnded = true;
    // Half a head is no request.
    if (this.#isRefused || this.#isHolding) return this.close();
    this.#pipe?.clientEnded();
    this.#closeIfOver();
  }

  clientClosed(): void {
    // So that the server stops working for this client.
    this.close();
  }

  serverOpened(socket: Socket<LoopbackTunnel>): void {
    if (this.#isClosed) {
      socket.terminate();
      return;
    }
    const { destination, info, now } = this.#options;
    this.#server = socket;
    this.#sourcePort = socket.localPort;
    // Before the first byte: the server closes connections that it does not find here.
    destination.known.add(this.#sourcePort, info);
    const pipe = new Pipe(this.#client, socket, now());
    this.#pipe = pipe;
    const buffered = this.#buffered;
    this.#buffered = [];
    this.#client.resume();
    for (const chunk of buffered) pipe.clientSent(chunk);
    if (this.#clientHasEnded) pipe.clientEnded();
  }

  serverSent(chunk: Buffer): void {
    if (!this.#isRefused) this.#pipe?.targetSent(chunk);
  }

  serverDrained(): void {
    this.#pipe?.targetDrained();
    this.#closeIfOver();
  }

  /** The server ends a connection only when it is done with both directions. */
  serverEnded(): void {
    if (this.#isRefused) return;
    this.#pipe?.targetEnded();
    this.#deadline = this.#options.now() + LINGER_MS;
    this.#closeIfOver();
  }

  serverClosed(isReset: boolean): void {
    if (this.#isRefused) return;
    if (isReset || this.#pipe === null) this.close();
    else this.serverEnded();
  }

  /** Whether the server has ended the connection and the kernel has all that it sent. */
  get isServed(): boolean {
    return this.#isRefused || this.#isHolding || this.#isFlushed;
  }

  get #isFlushed(): boolean {
    return this.#deadline < Number.POSITIVE_INFINITY && this.#pipe?.heldDown === 0;
  }

  /** Called about once a second. */
  tick(now: number): void {
    const overdue = this.#isRefused ? null : this.#options.info.heads?.overdue(now);
    if (overdue === "silent") return this.close();
    if (overdue === "partial") return this.#refuse(now);
    if (this.#options.info.isOutdated === true && this.#isReplaceable(now)) return this.close();
    // A client that still reads gets more time.
    if (this.#deadline <= now && (this.#pipe?.idleFor(now) ?? LINGER_MS) >= LINGER_MS) this.close();
  }

  /** Whether an outdated connection can be closed: other requests on it go on for a while. */
  #isReplaceable(now: number): boolean {
    if (this.#outdatedUntil === Number.POSITIVE_INFINITY) this.#outdatedUntil = now + OUTDATED_MS;
    return now >= this.#outdatedUntil || (this.#pipe?.idleFor(now) ?? 0) >= OUTDATED_IDLE_MS;
  }

  get #isHolding(): boolean {
    return this.#options.info.heads?.isHolding === true;
  }

  /** The head of a request has not arrived in time. */
  #refuse(now: number): void {
    this.#options.refused("the head of a request did not arrive in time");
    // Behind a response that the client has not read yet, 408 would become part of it.
    if ((this.#pipe?.heldDown ?? 0) > 0) return this.close();
    this.#isRefused = true;
    this.#client.write(headTimeout());
    this.#client.shutdown();
    this.#server?.terminate();
    this.#deadline = now + LINGER_MS;
  }

  #closeIfOver(): void {
    if (this.#pipe?.isOver === true) this.close();
  }

  /** Closes both sides now; after a regular end the kernel still sends what it holds. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#buffered = [];
    if (this.#sourcePort !== 0) this.#options.destination.known.delete(this.#sourcePort);
    if (this.#pipe?.isOver === true || this.#isFlushed) {
      this.#client.end();
      this.#server?.end();
    } else {
      this.#client.terminate();
      this.#server?.terminate();
    }
    this.#options.closed(this);
  }
}

const serverHandlers = {
  open: (socket: Socket<LoopbackTunnel>) => socket.data.serverOpened(socket),
  data: (socket: Socket<LoopbackTunnel>, chunk: Buffer) => socket.data.serverSent(chunk),
  drain: (socket: Socket<LoopbackTunnel>) => socket.data.serverDrained(),
  end: (socket: Socket<LoopbackTunnel>) => socket.data.serverEnded(),
  close: (socket: Socket<LoopbackTunnel>, error: unknown) =>
    socket.data.serverClosed(error instanceof Error),
  error: (socket: Socket<LoopbackTunnel>) => socket.data.serverClosed(true),
  connectError: (socket: Socket<LoopbackTunnel>) => socket.data.close(),
};
