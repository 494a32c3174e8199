// Accepts connections, finds out who each client is and what it wants, and hands it on; knows no server behind.
import {
  type Arrival,
  ArrivingConnection,
  type Ticket,
  type Verdict,
} from "./arriving-connection.ts";
import {
  CarriedConnection,
  type ClientSocket,
  type Destination,
  type SocketOwner,
} from "./carried-connection.ts";
import type { ConnectionFacts } from "./connection-facts.ts";

export interface FrontOptions {
  readonly address: string;
  readonly port: number;
  /** Whose PROXY header is believed; null when none is expected. */
  readonly trusts: ((address: string) => boolean) | null;
  readonly readsHello: boolean;
  /** Milliseconds in which a client must send what decides where it goes. */
  prereadTimeout(): number;
  /** Counts a connection in, before anything of it is read; a refusal when there are too many. */
  admit(): Ticket | string;
  /** Where a connection goes. */
  settle(arrival: Arrival, front: Front): Verdict;
  refused(reason: string, address: string): void;
}

const TICK_MS = 1000;
const FLUSH_MS = 1000;

interface Accepted extends ClientSocket {
  data: SocketOwner;
}

/** A bound port. Binds in the constructor, beside the other workers; throws the system's error. */
export class Front {
  readonly #options: FrontOptions;
  readonly #server: { stop(force: boolean): void };
  readonly #arriving = new Set<ArrivingConnection>();
  readonly #carried = new Set<CarriedConnection>();
  #clock: Timer | null = null;
  #emptied: (() => void) | null = null;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#server = Bun.listen({
      hostname: options.address,
      port: options.port,
      reusePort: true,
      // The server behind may still answer a client that has sent everything.
      allowHalfOpen: true,
      socket: this.#handlers(),
    } as unknown as Parameters<typeof Bun.listen<SocketOwner>>[0]);
  }

  /** Accepts no more; resolves when the last connection is gone or somebody else's. */
  stop(): Promise<void> {
    this.#server.stop(false);
    return new Promise((resolve) => {
      this.#emptied = resolve;
      this.#rest();
    });
  }

  /**
   * Closes everything. What servers have sent may still be on its way through here: connections that they have ended get that
   * out first, all others a moment to become such.
   */
  async close(): Promise<void> {
    this.#server.stop(false);
    const end = performance.now() + FLUSH_MS;
    const isServed = () => [...this.#carried].every((connection) => connection.isServed);
    while (!isServed() && performance.now() < end) await Bun.sleep(5);
    for (const connection of [...this.#arriving, ...this.#carried]) connection.close();
  }

  /** The verdict that leads to a server of this worker. */
  carry(arrival: Arrival, destination: Destination, facts: ConnectionFacts): Verdict {
    const { socket, early, ticket } = arrival;
    const to = { destination, facts, early, ended: () => ticket.leave() };
    return { owner: this.carrySocket(socket, to), holdsTicket: true };
  }

  /** The same for a socket that came another way. */
  carrySocket(
    socket: ClientSocket,
    to: {
      readonly destination: Destination;
      readonly facts: ConnectionFacts;
      readonly early: Buffer;
      readonly ended: () => void;
    },
  ): SocketOwner {
    const { facts } = to;
    const connection = new CarriedConnection(socket, to.early, {
      ...to,
      now: () => performance.now(),
      refused: (reason) => this.#options.refused(reason, facts.address),
      closed: (closed) => {
        to.ended();
        this.#carried.delete(closed);
        this.#rest();
      },
    });
    this.#carried.add(connection);
    this.#wake();
    return connection;
  }

  #accept(socket: Accepted): void {
    const ticket = this.#options.admit();
    if (typeof ticket === "string") {
      socket.data = nobody;
      this.#options.refused(ticket, socket.remoteAddress);
      socket.terminate();
      return;
    }
    const connection = new ArrivingConnection(socket, ticket, {
      now: () => performance.now(),
      timeoutMs: this.#options.prereadTimeout(),
      trusts: this.#options.trusts,
      readsHello: this.#options.readsHello,
      settle: (arrival) => this.#options.settle(arrival, this),
      refused: this.#options.refused,
      left: (left) => {
        this.#arriving.delete(left);
        this.#rest();
      },
    });
    socket.data = connection;
    this.#arriving.add(connection);
    this.#wake();
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

  #wake(): void {
    this.#clock ??= setInterval(() => {
      const now = performance.now();
      for (const connection of this.#arriving) connection.tick(now);
      for (const connection of this.#carried) connection.tick(now);
    }, TICK_MS);
  }

  /** Nothing to watch any more. */
  #rest(): void {
    if (this.#arriving.size + this.#carried.size > 0) return;
    if (this.#clock !== null) clearInterval(this.#clock);
    this.#clock = null;
    this.#emptied?.();
  }
}

/** Owns sockets that were closed before anything was read. */
const nobody: SocketOwner = {
  clientSent() {},
  clientDrained() {},
  clientEnded() {},
  clientClosed() {},
};
