// The connection pool of one target, last in, first out; knows no HTTP.
import { type ConnectionOwner, UpstreamConnection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";

export interface PoolOptions {
  /** Idle connections in the pool. */
  readonly size: number;
  /** Milliseconds before an idle connection is closed. */
  readonly idleTimeout: number;
  /** Requests per connection; 0: no limit. */
  readonly maxRequests: number;
}

/** Connections beyond `size` are closed after being idle for this long. */
const SURPLUS_MS = 1000;

const NO_CONNECTIONS: UpstreamConnection[] = [];

/** More than a tick of the clock of `idleSince`. */
const LOOK_AFTER_MS = 200;

/** A pool belongs to a target's address and TLS settings, not to a version of the configuration. */
export class ConnectionPool implements ConnectionOwner {
  #options: PoolOptions;
  readonly endpoint: Endpoint;
  readonly #idle: UpstreamConnection[] = [];
  readonly #all = new Set<UpstreamConnection>();
  #isClosed = false;
  /** Whether the target has sent bytes that belong to no response: it may again, and a moment after the next one. */
  #hasSurplus = false;
  /** `addresses.version` when idle connections were last checked against it. */
  #version = 0;

  constructor(endpoint: Endpoint, options: PoolOptions) {
    this.endpoint = endpoint;
    this.#options = options;
  }

  /** Connections, busy and idle. */
  get size(): number {
    return this.#all.size;
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  /** A connection for one request: an idle one if there is one, unless `fresh`. */
  acquire(fresh = false): UpstreamConnection {
    if (this.endpoint.addresses.version !== this.#version) this.#closeGone();
    const idle = fresh ? NO_CONNECTIONS : this.#idle;
    const now = idle.length === 0 ? 0 : performance.now();
    for (let at = idle.length - 1; at >= 0; at--) {
      const connection = idle[at];
      if (connection === undefined || connection.restsUntil > now) continue;
      // Without a list of what was removed, which nearly every request would make.
      if (at === idle.length - 1) idle.pop();
      else idle.splice(at, 1);
      // Asking the system costs as much as a read: only after a pause, in which the target may have closed it.
      const mayBeClosed = now - connection.idleSince > LOOK_AFTER_MS;
      if (connection.endsAt > now && !(mayBeClosed && connection.hasInput)) return connection;
      connection.destroy();
    }
    const connection = new UpstreamConnection(this.endpoint, this);
    this.#all.add(connection);
    return connection;
  }

  /** Sets the options of a new version of the service. */
  configure(options: PoolOptions): void {
    this.#options = options;
  }

  release(connection: UpstreamConnection, now: number): void {
    const { size, maxRequests } = this.#options;
    const isWorn = maxRequests > 0 && connection.requests >= maxRequests;
    const isGone = !this.endpoint.addresses.isFixed && this.#isGone(connection);
    const { boundTo } = connection;
    const isEnding = this.#isClosed || isWorn || size === 0 || isGone || boundTo === null;
    if (isEnding || !connection.isOpen) return connection.destroy();
    // To any other client it would be an account that is signed in.
    if (boundTo !== undefined) return boundTo.hold(connection);
    if (connection.isBounded) connection.freeReads();
    if (this.#hasSurplus) connection.rest();
    connection.idleSince = now;
    this.#idle.push(connection);
  }

  /** Whether the target no longer has the connection's address. */
  #isGone({ address }: UpstreamConnection): boolean {
    return address !== null && !this.endpoint.addresses.has(address);
  }

  #closeGone(): void {
    this.#version = this.endpoint.addresses.version;
    for (const connection of this.#idle.slice()) if (this.#isGone(connection)) connection.destroy();
  }

  onSurplus(): void {
    this.#hasSurplus = true;
  }

  closed(connection: UpstreamConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /**
   * Closes connections that were idle for too long or exceed the pool's size; call about once a second. Not in `release`: under load more
   * than `size` requests end together and as many begin a moment later, each of which would open a connection.
   */
  sweep(now: number): void {
    const { addresses } = this.endpoint;
    addresses.sweep(now);
    if (addresses.version !== this.#version) this.#closeGone();
    const { idleTimeout, size } = this.#options;
    // The longest idle ones come first.
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
    for (const connection of this.#all) if (connection.handler === null) connection.destroy();
  }
}
