// The connections to one target: kept ones are used again, latest first; knows no HTTP.
import { type ConnectionOwner, UpstreamConnection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";

export interface PoolOptions {
  /** Idle connections kept. */
  readonly size: number;
  /** Milliseconds an idle connection is kept. */
  readonly idleTimeout: number;
  /** Requests on one connection; 0 for no limit. */
  readonly maxRequests: number;
}

/** A connection that nobody needed for so long is not part of a busy moment. */
const SURPLUS_MS = 1000;

/** A pool belongs to a target's address and TLS settings, not to a version of the configuration. */
export class ConnectionPool implements ConnectionOwner {
  #options: PoolOptions;
  readonly endpoint: Endpoint;
  readonly #now: () => number;
  readonly #idle: UpstreamConnection[] = [];
  readonly #all = new Set<UpstreamConnection>();
  #isClosed = false;
  /** Of the addresses, when the idle connections were last looked through. */
  #version = 0;

  constructor(endpoint: Endpoint, options: PoolOptions, now: () => number) {
    this.endpoint = endpoint;
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
  acquire(fresh = false): UpstreamConnection {
    if (this.endpoint.addresses.version !== this.#version) this.#closeGone();
    const kept = fresh ? undefined : this.#idle.pop();
    if (kept !== undefined) return kept;
    const connection = new UpstreamConnection(this.endpoint, this);
    this.#all.add(connection);
    return connection;
  }

  /** Other limits, from a new version of the service. */
  configure(options: PoolOptions): void {
    this.#options = options;
  }

  release(connection: UpstreamConnection): void {
    const { size, maxRequests } = this.#options;
    const isWorn = maxRequests > 0 && connection.requests >= maxRequests;
    if (this.#isClosed || isWorn || size === 0 || !connection.isOpen || this.#isGone(connection)) {
      connection.destroy();
      return;
    }
    connection.idleSince = this.#now();
    this.#idle.push(connection);
  }

  /** Whether it leads to an address that the target has no more. */
  #isGone({ address }: UpstreamConnection): boolean {
    if (this.endpoint.addresses.isFixed) return false;
    return address !== null && !this.endpoint.addresses.has(address);
  }

  #closeGone(): void {
    this.#version = this.endpoint.addresses.version;
    for (const connection of this.#idle.slice()) if (this.#isGone(connection)) connection.destroy();
  }

  closed(connection: UpstreamConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /**
   * Closes what has been idle for too long, and what is too many; call about once a second. Not at once: under load more
   * than `size` requests end together and as many begin a moment later, and each would pay for a connection of its own.
   */
  sweep(now: number): void {
    const { addresses } = this.endpoint;
    addresses.sweep(now);
    if (addresses.version !== this.#version) this.#closeGone();
    const { idleTimeout, size } = this.#options;
    // The longest idle ones are at the front.
    for (let oldest = this.#idle[0]; oldest !== undefined; oldest = this.#idle[0]) {
      const idleMs = now - oldest.idleSince;
      const isSurplus = this.#idle.length > size && idleMs >= SURPLUS_MS;
      if (idleMs < idleTimeout && !isSurplus) return;
      oldest.destroy();
    }
  }

  /** Closes idle connections now and busy ones when their request ends. */
  close(): void {
    this.#isClosed = true;
    this.endpoint.addresses.close();
    for (const connection of this.#idle.slice()) connection.destroy();
  }
}
