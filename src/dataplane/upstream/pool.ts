// The connections to one target: kept ones are used again, latest first; knows no HTTP.
import { type ConnectionHome, type Endpoint, UpstreamConnection } from "./connection.ts";

export interface PoolOptions {
  /** Idle connections kept. */
  readonly size: number;
  /** Milliseconds an idle connection is kept. */
  readonly idleTimeout: number;
  /** Requests on one connection; 0 for no limit. */
  readonly maxRequests: number;
}

/** A pool belongs to a target's address and TLS settings, not to a version of the configuration. */
export class ConnectionPool implements ConnectionHome {
  #options: PoolOptions;
  readonly #endpoint: Endpoint;
  readonly #now: () => number;
  readonly #idle: UpstreamConnection[] = [];
  readonly #all = new Set<UpstreamConnection>();
  #isClosed = false;

  constructor(endpoint: Endpoint, options: PoolOptions, now: () => number) {
    this.#endpoint = endpoint;
    this.#options = options;
    this.#now = now;
  }

  /** Connections that exist, busy and idle. */
  get size(): number {
    return this.#all.size;
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  /** A connection for one request: a kept one when there is one and `fresh` is false. */
  lease(fresh = false): UpstreamConnection {
    const kept = fresh ? undefined : this.#idle.pop();
    if (kept !== undefined) return kept;
    const connection = new UpstreamConnection(this.#endpoint, this);
    this.#all.add(connection);
    return connection;
  }

  /** Other limits, from a new version of the service. */
  configure(options: PoolOptions): void {
    this.#options = options;
  }

  takeBack(connection: UpstreamConnection): void {
    const { size, maxRequests } = this.#options;
    const isWorn = maxRequests > 0 && connection.requests >= maxRequests;
    if (this.#isClosed || isWorn || !connection.isOpen || this.#idle.length >= size) {
      connection.destroy();
      return;
    }
    connection.idleSince = this.#now();
    this.#idle.push(connection);
  }

  closed(connection: UpstreamConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Closes what has been idle for too long; call about once a second. */
  sweep(now: number): void {
    const before = now - this.#options.idleTimeout;
    // The longest idle ones are at the front.
    while ((this.#idle[0]?.idleSince ?? Number.POSITIVE_INFINITY) <= before)
      this.#idle[0]?.destroy();
  }

  /** Closes idle connections now and busy ones when their request ends. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.slice()) connection.destroy();
  }
}
