// The open WebSockets and other upgraded connections of one worker: counts, watches and drains them; knows no handshake.
import type { WebSocketHandler } from "bun";
import type { UpgradedConnectionView } from "../../snapshot/message.ts";
import { Tunnel } from "../server/tunnel.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import { closeCodes, FrameEncoder, MAX_MESSAGE_BYTES } from "./frame.ts";
import type { ReservedBits } from "./frame-follower.ts";
import type { SessionTimeouts } from "./peer-watch.ts";
import { type SessionPath, WebSocketSession } from "./session.ts";

/** Seconds of silence before the gateway pings a peer, and again before it closes the connection. */
const IDLE_SECONDS = 120;
/** Seconds without progress after which the gateway terminates a closing WebSocket. */
const CLOSING_SECONDS = 10;
/** Longest interval between ticks; shorter with short timeouts. */
const MAX_TICK_MS = 1000;

/** Overrides of the built-in timeouts. */
export interface WebSocketTimeouts {
  readonly idleSeconds?: number;
  readonly closingSeconds?: number;
}

export interface WebSocketsOptions {
  /** Index of the worker: a part of the ids. */
  readonly worker: number;
  /** The number of open WebSockets has changed. */
  onCount(open: number): void;
  readonly timeouts?: WebSocketTimeouts | undefined;
}

type OpenFacts = Pick<UpgradedConnectionView, "id" | "protocol" | "client" | "started_at">;

/** Messages on engines that read them; bytes on those that hand their sockets over. */
export type UpgradedSession = WebSocketSession | Tunnel;

/** A target that has sent 101. */
export interface UpgradedTarget {
  readonly path: SessionPath;
  /** As the client gets it in Upgrade. */
  readonly protocol: string;
  /** The client, as the API shows it. */
  readonly client: string;
  readonly connection: UpstreamConnection;
  /** The first bytes that the target sent as frames. */
  readonly rest: Buffer;
  /** Milliseconds without progress after which a peer that does not read is cut off; 0: no limit. */
  readonly writeTimeout: number;
  /** Upgrades the client's connection; false when the engine cannot. Throws what the engine throws. */
  readonly switchClient: (session: UpgradedSession) => boolean;
  /** Both sides have closed. */
  readonly ended: (session: UpgradedSession) => void;
  /** What passes as bytes; null: the engine reads the messages of a WebSocket. */
  readonly tunnel: {
    /** The reserved bits of a WebSocket's frames; null: another protocol. */
    readonly frames: ReservedBits | null;
  } | null;
}

/** The WebSockets and other upgraded connections of one worker. They outlive configuration versions. */
export interface WebSockets {
  /** Opens a session between the target and the client; false when the client could not be upgraded. */
  open(target: UpgradedTarget): boolean;
  /** For Bun.serve. */
  readonly handler: WebSocketHandler<never>;
  /** Open WebSockets. */
  readonly size: number;
  /** Those of one route. */
  list(routeId: string): UpgradedConnectionView[];
  /** Closes a WebSocket with 1001, another connection by FIN to both ends; false when it is not one of this worker. */
  kill(id: string): boolean;
  /** Closes those whose route, service or target is gone, with 1001. */
  closeWhere(isGone: (path: SessionPath) => boolean): void;
  /** Closes all with 1001, also those that open later. */
  goAway(): void;
  /** Resolves when all have closed, or after this time. */
  ended(timeoutMs: number): Promise<void>;
  /** Waits until all have closed and terminates the rest; resolves with the number of terminated ones. */
  drained(timeoutMs: number): Promise<number>;
}

export function createWebSockets(options: WebSocketsOptions): WebSockets {
  return new SessionSet(options);
}

class SessionSet implements WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #sessions = new Map<UpgradedSession, OpenFacts>();
  readonly #encoder = new FrameEncoder();
  /** Random, so that no peer's own ping equals the gateway's. */
  readonly #pingPayload = Buffer.from(crypto.getRandomValues(new Uint8Array(8)).buffer);
  readonly #timeouts: SessionTimeouts;
  readonly handler = clientHandler() as unknown as WebSocketHandler<never>;
  #isGoingAway = false;
  #count = 0;
  /** One for all sessions, while there are any. */
  #timer: Timer | null = null;
  #onEmpty: (() => void) | null = null;

  constructor(options: WebSocketsOptions) {
    this.#options = options;
    const { idleSeconds = IDLE_SECONDS, closingSeconds = CLOSING_SECONDS } = options.timeouts ?? {};
    this.#timeouts = { idle: idleSeconds * 1000, closing: closingSeconds * 1000 };
  }

  get size(): number {
    return this.#sessions.size;
  }

  open(target: UpgradedTarget): boolean {
    const { path, connection, writeTimeout, tunnel, rest } = target;
    const onEnd = () => {
      this.#remove(session);
      target.ended(session);
    };
    const options = {
      path,
      connection,
      encoder: this.#encoder,
      writeTimeout,
      pingPayload: this.#pingPayload,
      now: performance.now(),
      onEnd,
    };
    const session: UpgradedSession =
      tunnel === null
        ? new WebSocketSession(options)
        : new Tunnel({ ...options, frames: tunnel.frames });
    if (!target.switchClient(session)) return false;
    const started_at = new Date();
    const id = `${this.#options.worker + 1}-w${++this.#count}-${started_at.getTime().toString(36)}`;
    const { protocol, client } = target;
    this.#sessions.set(session, { id, protocol, client, started_at: started_at.toISOString() });
    this.#startTimer();
    this.#options.onCount(this.#sessions.size);
    session.begin(rest);
    if (this.#isGoingAway) session.close(closeCodes.goingAway, GOING_AWAY);
    return true;
  }

  #remove(session: UpgradedSession): void {
    this.#sessions.delete(session);
    this.#options.onCount(this.#sessions.size);
    if (this.#sessions.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }

  #startTimer(): void {
    if (this.#timer !== null) return;
    const { idle, closing } = this.#timeouts;
    this.#timer = setInterval(
      () => {
        const now = performance.now();
        for (const session of this.#sessions.keys()) session.tick(now, this.#timeouts);
      },
      Math.min(MAX_TICK_MS, idle / 4, closing / 4),
    );
  }

  list(routeId: string): UpgradedConnectionView[] {
    return [...this.#sessions]
      .filter(([{ path }]) => path.routeId === routeId)
      .map(([{ path, bytesIn, bytesOut }, { id, protocol, client, started_at }]) => ({
        id,
        route_id: routeId,
        protocol,
        client,
        target_id: path.targetId,
        bytes_in: bytesIn,
        bytes_out: bytesOut,
        started_at,
      }));
  }

  kill(id: string): boolean {
    const found = [...this.#sessions].find(([, facts]) => facts.id === id);
    found?.[0].close(closeCodes.goingAway, "");
    return found !== undefined;
  }

  closeWhere(isGone: (path: SessionPath) => boolean): void {
    for (const session of [...this.#sessions.keys()])
      if (isGone(session.path)) session.close(closeCodes.goingAway, "");
  }

  goAway(): void {
    this.#isGoingAway = true;
    for (const session of [...this.#sessions.keys()])
      session.close(closeCodes.goingAway, GOING_AWAY);
  }

  async drained(timeoutMs: number): Promise<number> {
    await this.ended(timeoutMs);
    const late = [...this.#sessions.keys()];
    for (const session of late) session.terminate();
    return late.length;
  }

  async ended(timeoutMs: number): Promise<void> {
    if (this.#sessions.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

const GOING_AWAY = "the gateway is stopping";

/** Most bytes buffered for a client: a message and the rest of one read. More means a client that sends pings and reads no pongs. */
const MAX_WAITING_BYTES = 2 * MAX_MESSAGE_BYTES;

function clientHandler(): WebSocketHandler<WebSocketSession> {
  return {
    maxPayloadLength: MAX_MESSAGE_BYTES,
    backpressureLimit: MAX_WAITING_BYTES,
    closeOnBackpressureLimit: true,
    // Bun's idle timeout restarts with each message to the client, so a dead client would stay while the target sends.
    idleTimeout: 0,
    sendPings: false,
    perMessageDeflate: false,
    open: (client) => client.data.clientOpened(client),
    message: (client, message) => client.data.clientSent(message),
    ping: (client, data) => client.data.clientPinged(data),
    pong: (client, data) => client.data.clientPonged(data),
    drain: (client) => client.data.clientDrained(),
    close: (client, code, reason) => client.data.clientClosed(code, reason),
  };
}
