// Accepts connections at an address and port, reads the PROXY header and the ClientHello, and begins TLS; knows no request and no route.
import type { TlsSocket } from "../server/bun-tls.ts";
import { PeerSocket } from "../server/peer-socket.ts";
import { TlsHandshake, type TlsHandshakeOptions } from "../server/tls-handshake.ts";
import { type AcceptedSocket, acceptedHandlers, type SocketOwner } from "./client-socket.ts";
import { connectionInfo } from "./connection-info.ts";
import {
  type AcceptDecision,
  type ConnectionSlot,
  PendingConnection,
  type Preread,
} from "./pending-connection.ts";

export interface AcceptorOptions {
  readonly address: string;
  readonly port: number;
  /** Whether to trust the PROXY header of a peer; null: no PROXY protocol. Asked for each connection, as `readsHello`. */
  trusts(): ((address: string) => boolean) | null;
  /** Whether a connection must begin with a TLS ClientHello. */
  readsHello(): boolean;
  /** Milliseconds in which a client must send its PROXY header and ClientHello, and as many for the handshake. */
  prereadTimeout(): number;
  /** Counts a connection before anything is read; the reason when there are too many. */
  admit(): ConnectionSlot | string;
  /** Routes a connection. */
  decide(preread: Preread): AcceptDecision;
  refused(reason: string, address: string): void;
  /** A TLS handshake succeeded or failed. */
  onHandshake?(isDone: boolean): void;
}

/** How the TLS of a connection ends. */
export type Termination = Pick<
  TlsHandshakeOptions,
  "context" | "clientAuth" | "protocol" | "accepted"
>;

/** A connection that nothing serves yet, or any more. */
interface Waiting {
  /** Called about once a second. */
  tick(now: number): void;
  /** Closes at once. */
  close(): void;
}

const TICK_MS = 1000;

/** A bound port, with SO_REUSEPORT beside the other workers. */
export class Acceptor {
  readonly #options: AcceptorOptions;
  readonly #server: { stop(force: boolean): void };
  readonly #waiting = new Set<Waiting>();
  #timer: Timer | null = null;
  #onEmpty: (() => void) | null = null;

  /** Binds; throws the system's error. */
  constructor(options: AcceptorOptions) {
    this.#options = options;
    this.#server = Bun.listen({
      hostname: options.address,
      port: options.port,
      reusePort: true,
      // A client may send FIN behind its request and wait for the response.
      allowHalfOpen: true,
      socket: acceptedHandlers((socket) => this.#accept(socket)),
    } as unknown as Parameters<typeof Bun.listen<SocketOwner>>[0]);
  }

  /** Accepts no more; resolves when no connection waits any more. */
  stop(): Promise<void> {
    this.#server.stop(false);
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#stopIfEmpty();
    });
  }

  /** Accepts no more, and closes at once what waits. */
  close(): void {
    this.#server.stop(false);
    for (const connection of this.#waiting) connection.close();
  }

  #accept(socket: AcceptedSocket): void {
    const { admit, prereadTimeout, trusts, readsHello, decide, refused } = this.#options;
    const slot = admit();
    if (typeof slot === "string") {
      refused(slot, socket.remoteAddress);
      socket.terminate();
      return;
    }
    const connection = new PendingConnection(socket, slot, {
      now: () => performance.now(),
      timeoutMs: prereadTimeout(),
      trusts: trusts(),
      readsHello: readsHello(),
      decide,
      refused,
      done: (done) => this.#over(done),
    });
    socket.data = connection;
    this.#wait(connection);
    connection.begin();
  }

  /** The connection, of which nothing but the ClientHello was read, becomes TLS in place. */
  secure(
    { socket, slot, buffered, ...preread }: Preread,
    termination: Termination,
  ): AcceptDecision {
    const { refused, onHandshake, prereadTimeout } = this.#options;
    const info = connectionInfo(preread);
    const handshake = new TlsHandshake({
      ...termination,
      info,
      deadline: performance.now() + prereadTimeout(),
      ended: (isDone) => {
        onHandshake?.(isDone);
        this.#over(handshake);
      },
      refused: (reason) => {
        refused(reason, info.address);
        slot.release();
      },
    });
    this.#wait(handshake);
    return { owner: handshake.begin(socket, buffered), ownsSlot: true };
  }

  /** Closes a connection whose client has seen all that it wants. */
  linger(secured: TlsSocket, slot: ConnectionSlot): void {
    const socket = new PeerSocket(secured, {
      received() {},
      drained() {},
      ended() {},
      closed: () => {
        slot.release();
        this.#over(lingering);
      },
    });
    const lingering: Waiting = {
      tick: (now) => socket.tick(now),
      close: () => socket.destroy(),
    };
    this.#wait(lingering);
    secured.data = socket;
    socket.finish(performance.now());
  }

  #wait(waiting: Waiting): void {
    this.#waiting.add(waiting);
    this.#timer ??= setInterval(() => {
      const now = performance.now();
      for (const connection of this.#waiting) connection.tick(now);
    }, TICK_MS);
  }

  #over(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    this.#stopIfEmpty();
  }

  #stopIfEmpty(): void {
    if (this.#waiting.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }
}
