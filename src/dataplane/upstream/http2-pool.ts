// The HTTP/2 sessions of one target; knows no request.
import { UpstreamConnection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";
import { type SessionOwner, UpstreamSession } from "./http2-session.ts";
import type { SessionUser } from "./http2-user.ts";
import type { PoolOptions } from "./pool.ts";

/** A session this old may have been closed by the target without the gateway's knowledge. */
const FRESH_MS = 1000;

export interface SessionChoice {
  /** On a session that the target cannot have closed yet. */
  readonly isFresh: boolean;
  /** Not on a session of clients that abort rarely, or the other way round. */
  readonly isApart: boolean;
}

/** Belongs to a target's address and TLS settings, not to a version of the configuration. */
export class SessionPool implements SessionOwner {
  readonly endpoint: Endpoint;
  readonly now: () => number;
  #options: PoolOptions;
  /** Sessions that accept streams. */
  readonly #sessions: UpstreamSession[] = [];
  /** Sessions whose last streams go on. */
  readonly #retired = new Set<UpstreamSession>();
  #isClosed = false;
  /** `addresses.version` when sessions were last checked against it. */
  #version = 0;

  constructor(endpoint: Endpoint, options: PoolOptions, now: () => number) {
    this.endpoint = endpoint;
    this.#options = options;
    this.now = now;
  }

  configure(options: PoolOptions): void {
    this.#options = options;
  }

  /** Joins the least busy session with room for a stream, or a new one. One session for each address of the target is opened first. */
  acquire(user: SessionUser, choice: SessionChoice): UpstreamSession {
    const session = this.#pick(choice);
    session.join(user);
    if (this.#isWorn(session)) session.retire();
    return session;
  }

  #pick({ isFresh, isApart }: SessionChoice): UpstreamSession {
    const { addresses } = this.endpoint;
    if (addresses.version !== this.#version) this.#retireGone();
    let best: UpstreamSession | null = null;
    const oldest = this.now() - FRESH_MS;
    for (const session of this.#sessions) {
      if (session.isApart !== isApart || !session.hasCapacity) continue;
      if (isFresh && !session.isConnecting && session.openedAt < oldest) continue;
      if (best === null || session.load < best.load) best = session;
    }
    const isAlone = best === null || (best.load > 0 && this.#sessions.length < addresses.size);
    if (best !== null && !isAlone) return best;
    const made = new UpstreamSession(this, isApart);
    this.#sessions.push(made);
    return made;
  }

  dial(session: UpstreamSession): UpstreamConnection {
    return new UpstreamConnection(this.endpoint, session);
  }

  sessionRetired(session: UpstreamSession): void {
    const at = this.#sessions.indexOf(session);
    if (at >= 0) this.#sessions.splice(at, 1);
    if (session.isOver) this.#retired.delete(session);
    else this.#retired.add(session);
  }

  sessionIdle(session: UpstreamSession): void {
    const { size } = this.#options;
    if (this.#isClosed || size === 0) session.retire();
  }

  #isWorn({ requests }: UpstreamSession): boolean {
    const { maxRequests } = this.#options;
    return maxRequests > 0 && requests >= maxRequests;
  }

  /** Retires sessions to addresses that the name no longer has. */
  #retireGone(): void {
    const { addresses } = this.endpoint;
    this.#version = addresses.version;
    if (addresses.isFixed) return;
    for (const session of this.#sessions.slice()) {
      const { address } = session;
      if (address !== null && !addresses.has(address)) session.retire();
    }
  }

  /** Closes idle sessions; call about once a second. `now` in the worker's milliseconds. */
  sweep(now: number): void {
    const { addresses } = this.endpoint;
    addresses.sweep(now);
    if (addresses.version !== this.#version) this.#retireGone();
    for (const session of [...this.#sessions, ...this.#retired]) {
      const isIdle = session.isReady && session.load === 0;
      if (isIdle && now - session.idleSince >= this.#options.idleTimeout) session.retire();
      else session.tick(now);
    }
  }

  /** Closes idle sessions now and busy ones when their streams end. */
  close(): void {
    this.#isClosed = true;
    this.endpoint.addresses.close();
    for (const session of this.#sessions.slice()) session.retire();
  }
}
