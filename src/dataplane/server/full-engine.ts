// The engine for HTTP/2 with trailers: Node's TLS and HTTP/2 over sockets of an acceptor; knows no route and no listener.
import type { SocketOwner } from "../listener/loopback-tunnel.ts";
import {
  FullConnection,
  type FullEngineOptions,
  type RoutedConnection,
} from "./full-connection.ts";
import { Http1Parser } from "./full-http1.ts";

const TICK_MS = 1000;
const FLUSH_MS = 1000;

export class FullEngine {
  readonly #options: FullEngineOptions;
  readonly #connections = new Set<FullConnection>();
  /** Made for the first HTTP/1.1 connection. */
  #http1: Http1Parser | null = null;
  #timer: Timer | null = null;
  #onEmpty: (() => void) | null = null;
  #isGoingAway = false;

  constructor(options: FullEngineOptions) {
    this.#options = options;
  }

  /** Serves a connection; the owner of its socket. */
  accept(routed: RoutedConnection): SocketOwner {
    const options = { ...this.#options, http1: () => (this.#http1 ??= new Http1Parser()) };
    const connection = new FullConnection(routed, options, () => {
      this.#connections.delete(connection);
      routed.ended();
      this.#stopIfEmpty();
    });
    this.#connections.add(connection);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
    connection.begin(routed.buffered);
    if (this.#isGoingAway) connection.goAway();
    return connection.owner;
  }

  #tick(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.tick(now);
  }

  /** Open streams. */
  get pending(): number {
    let pending = 0;
    for (const { openStreams } of this.#connections) pending += openStreams;
    return pending;
  }

  /** Asks all clients to open other connections; open streams go on. */
  goAway(): void {
    this.#isGoingAway = true;
    for (const connection of this.#connections) connection.goAway();
  }

  /** Resolves when the last connection is closed. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#stopIfEmpty();
    });
  }

  /** Closes all connections, but first waits up to FLUSH_MS until complete responses are sent. */
  async close(): Promise<void> {
    const end = performance.now() + FLUSH_MS;
    const isServed = () => [...this.#connections].every((connection) => connection.isServed);
    // At least one turn of the event loop: frames are written at its end.
    do await Bun.sleep(5);
    while (!isServed() && performance.now() < end);
    for (const connection of this.#connections) connection.close();
  }

  #stopIfEmpty(): void {
    if (this.#connections.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }
}
