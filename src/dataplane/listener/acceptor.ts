// Accepts connections, reads the PROXY header and TLS server name, and routes each connection; knows no server behind.
import {
  type Preread,
  PendingConnection,
  type ConnectionSlot,
  type AcceptDecision,
} from "./pending-connection.ts";
import {
  LoopbackTunnel,
  NO_OWNER,
  type ClientSocket,
  type Destination,
  type SocketOwner,
  isGone,
} from "./loopback-tunnel.ts";
import type { ConnectionInfo } from "./connection-info.ts";

export interface AcceptorOptions {
  readonly address: string;
  readonly port: number;
  /** Whether to trust the PROXY header of a peer; null: no PROXY protocol. */
  readonly trusts: ((address: string) => boolean) | null;
  readonly readsHello: boolean;
  /** Milliseconds in which a client must send its PROXY header and ClientHello. */
  prereadTimeout(): number;
  /** Counts a connection before anything is read; the reason when there are too many. */
  admit(): ConnectionSlot | string;
  /** Routes a connection. */
  decide(preread: Preread, acceptor: Acceptor): AcceptDecision;
  refused(reason: string, address: string): void;
}

const TICK_MS = 1000;
const FLUSH_MS = 1000;

interface Accepted extends ClientSocket {
  data: SocketOwner;
}

/** A bound port, with SO_REUSEPORT beside the other workers. The constructor binds and throws the system's error. */
export class Acceptor {
  readonly #options: AcceptorOptions;
  readonly #server: { stop(force: boolean): void };
  readonly #pending = new Set<PendingConnection>();
  readonly #tunnels = new Set<LoopbackTunnel>();
  #timer: Timer | null = null;
  #onEmpty: (() => void) | null = null;

  constructor(options: AcceptorOptions) {
    this.#options = options;
    this.#server = Bun.listen({
      hostname: options.address,
      port: options.port,
      reusePort: true,
      // The server behind may still respond to a client that has sent FIN.
      allowHalfOpen: true,
      socket: this.#handlers(),
    } as unknown as Parameters<typeof Bun.listen<SocketOwner>>[0]);
  }

  /** Stops accepting; resolves when the last connection is closed or has another owner. */
  stop(): Promise<void> {
    this.#server.stop(false);
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#stopIfEmpty();
    });
  }

  /**
   * Closes everything, but first waits up to FLUSH_MS until all tunnels have sent to the client what their servers sent.
   */
  async close(): Promise<void> {
    this.#server.stop(false);
    const end = performance.now() + FLUSH_MS;
    const isServed = () => [...this.#tunnels].every((connection) => connection.isServed);
    while (!isServed() && performance.now() < end) await Bun.sleep(5);
    for (const connection of [...this.#pending, ...this.#tunnels]) connection.close();
  }

  /** Routes the connection to a server of this worker. */
  tunnel(preread: Preread, destination: Destination, info: ConnectionInfo): AcceptDecision {
    const { socket, buffered, slot } = preread;
    const to = { destination, info, buffered, ended: () => slot.release() };
    return { owner: this.tunnelSocket(socket, to), ownsSlot: true };
  }

  /** The same for a socket from elsewhere, such as one whose TLS has ended. */
  tunnelSocket(
    socket: ClientSocket,
    to: {
      readonly destination: Destination;
      readonly info: ConnectionInfo;
      readonly buffered: Buffer;
      readonly ended: () => void;
    },
  ): SocketOwner {
    const { info } = to;
    const connection = new LoopbackTunnel(socket, to.buffered, {
      ...to,
      now: () => performance.now(),
      refused: (reason) => this.#options.refused(reason, info.address),
      closed: (closed) => {
        to.ended();
        this.#tunnels.delete(closed);
        this.#stopIfEmpty();
      },
    });
    this.#tunnels.add(connection);
    this.#startTimer();
    return connection;
  }

  #accept(socket: Accepted): void {
    socket.data = NO_OWNER;
    if (isGone(socket)) return void socket.terminate();
    const slot = this.#options.admit();
    if (typeof slot === "string") {
      this.#options.refused(slot, socket.remoteAddress);
      socket.terminate();
      return;
    }
    const connection = new PendingConnection(socket, slot, {
      now: () => performance.now(),
      timeoutMs: this.#options.prereadTimeout(),
      trusts: this.#options.trusts,
      readsHello: this.#options.readsHello,
      decide: (preread) => this.#options.decide(preread, this),
      refused: this.#options.refused,
      done: (connection) => {
        this.#pending.delete(connection);
        this.#stopIfEmpty();
      },
    });
    socket.data = connection;
    this.#pending.add(connection);
    this.#startTimer();
    connection.begin();
  }

  #handlers() {
    return {
      open: (socket: Accepted) => this.#accept(socket),
      data: (socket: Accepted, chunk: Buffer) => socket.data.clientSent(chunk),
      drain: (socket: Accepted) => socket.data.clientDrained(),
      end: (socket: Accepted) => socket.data.clientEnded(),
      close: (socket: Accepted, error: unknown) => socket.data.clientClosed(error instanceof Error),
      error: (socket: Accepted) => socket.data.clientClosed(true),
    };
  }

  #startTimer(): void {
    this.#timer ??= setInterval(() => {
      const now = performance.now();
      for (const connection of this.#pending) connection.tick(now);
      for (const connection of this.#tunnels) connection.tick(now);
    }, TICK_MS);
  }

  #stopIfEmpty(): void {
    if (this.#pending.size + this.#tunnels.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }
}
