// The open WebSockets of one worker: counts them, watches them, closes them at the end; knows no handshake.
import type { WebSocketHandler } from "bun";
import type { UpstreamConnection } from "../upstream/connection.ts";
import { closeCodes, FrameEncoder, MAX_MESSAGE_BYTES } from "./frame.ts";
import type { SessionTimes } from "./peer-watch.ts";
import { type SessionPath, WebSocketSession } from "./session.ts";

/** After as many seconds of silence a peer is asked whether it is still there; after as many more it is gone. */
const IDLE_SECONDS = 120;
/** While a WebSocket ends, both sides must get on at least this often, or it is cut. */
const CLOSING_SECONDS = 10;
/** How often all sessions are looked at, unless they have less time than a few looks take. */
const MAX_LOOK_MS = 1000;

/** In the place of the product's times. */
export interface WebSocketTimes {
  readonly idleSeconds?: number;
  readonly closingSeconds?: number;
}

export interface WebSocketsOptions {
  /** How many are open, whenever that changes. */
  onCount(open: number): void;
  readonly times?: WebSocketTimes | undefined;
}

/** A target that has switched protocols. */
export interface SwitchedTarget {
  readonly path: SessionPath;
  readonly connection: UpstreamConnection;
  /** The first bytes that the target sent as frames. */
  readonly rest: Buffer;
  /** Milliseconds in which something of what waits for a peer must go out; 0 for no limit. */
  readonly writeTimeout: number;
  /** Switches the client's connection to the session; false when that failed. Throws what the engine throws. */
  readonly switchClient: (session: WebSocketSession) => boolean;
  /** Both sides have ended. */
  readonly ended: (session: WebSocketSession) => void;
}

/** The WebSockets of one worker. They belong to no version of the configuration: a change leaves them alone. */
export interface WebSockets {
  /** Opens a session between the target and the client; false when the client could not be switched. */
  open(target: SwitchedTarget): boolean;
  /** For Bun.serve. */
  readonly handler: WebSocketHandler<never>;
  /** How many are open. */
  readonly size: number;
  /** Says goodbye with 1001 to those whose route, service or target is gone. */
  closeWhere(isGone: (path: SessionPath) => boolean): void;
  /** Says goodbye with 1001 to all, and to those that are still being opened. */
  goAway(): void;
  /** Resolves when all have ended, or after this time. */
  ended(timeoutMs: number): Promise<void>;
  /** Waits until all have ended; resolves with how many had to be cut because they did not within the time. */
  drained(timeoutMs: number): Promise<number>;
}

export function createWebSockets(options: WebSocketsOptions): WebSockets {
  return new SessionSet(options);
}

class SessionSet implements WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #sessions = new Set<WebSocketSession>();
  readonly #encoder = new FrameEncoder();
  /** Nobody can know it, so nobody's own ping is taken for the gateway's. */
  readonly #probe = Buffer.from(crypto.getRandomValues(new Uint8Array(8)).buffer);
  readonly #times: SessionTimes;
  readonly handler = clientHandler() as unknown as WebSocketHandler<never>;
  #isGoingAway = false;
  /** One for all sessions; it runs while there are any. */
  #clock: Timer | null = null;
  #onEmpty: (() => void) | null = null;

  constructor(options: WebSocketsOptions) {
    this.#options = options;
    const { idleSeconds = IDLE_SECONDS, closingSeconds = CLOSING_SECONDS } = options.times ?? {};
    this.#times = { idle: idleSeconds * 1000, closing: closingSeconds * 1000 };
  }

  get size(): number {
    return this.#sessions.size;
  }

  open(target: SwitchedTarget): boolean {
    const session = new WebSocketSession({
      path: target.path,
      connection: target.connection,
      encoder: this.#encoder,
      writeTimeout: target.writeTimeout,
      probe: this.#probe,
      now: performance.now(),
      onEnd: () => {
        this.#remove(session);
        target.ended(session);
      },
    });
    if (!target.switchClient(session)) return false;
    this.#sessions.add(session);
    this.#startClock();
    this.#options.onCount(this.#sessions.size);
    if (target.rest.length > 0) session.received(target.rest);
    if (this.#isGoingAway) session.close(closeCodes.goingAway, GOODBYE);
    return true;
  }

  #remove(session: WebSocketSession): void {
    this.#sessions.delete(session);
    this.#options.onCount(this.#sessions.size);
    if (this.#sessions.size > 0) return;
    if (this.#clock !== null) clearInterval(this.#clock);
    this.#clock = null;
    this.#onEmpty?.();
  }

  #startClock(): void {
    if (this.#clock !== null) return;
    const { idle, closing } = this.#times;
    this.#clock = setInterval(
      () => {
        const now = performance.now();
        for (const session of this.#sessions) session.tick(now, this.#times);
      },
      Math.min(MAX_LOOK_MS, idle / 4, closing / 4),
    );
  }

  closeWhere(isGone: (path: SessionPath) => boolean): void {
    for (const session of [...this.#sessions])
      if (isGone(session.path)) session.close(closeCodes.goingAway, "");
  }

  goAway(): void {
    this.#isGoingAway = true;
    for (const session of [...this.#sessions]) session.close(closeCodes.goingAway, GOODBYE);
  }

  async drained(timeoutMs: number): Promise<number> {
    await this.ended(timeoutMs);
    const late = [...this.#sessions];
    for (const session of late) session.cut();
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

const GOODBYE = "the gateway is stopping";

/** Most that may wait for a client: a message, and what came with it in one read. More is a client that asks for pongs and reads none. */
const MAX_WAITING_BYTES = 2 * MAX_MESSAGE_BYTES;

function clientHandler(): WebSocketHandler<WebSocketSession> {
  return {
    maxPayloadLength: MAX_MESSAGE_BYTES,
    backpressureLimit: MAX_WAITING_BYTES,
    closeOnBackpressureLimit: true,
    // Bun's begins anew with each message to the client, so one that vanished would stay for as long as the target talks.
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
