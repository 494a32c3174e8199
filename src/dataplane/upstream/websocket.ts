// The WebSockets of one worker: opens them, counts them, closes them at the end; knows no route matching.
import type { WebSocketHandler } from "bun";
import type { ProxyError } from "../error.ts";
import type { WebSocketProxy } from "../handler.ts";
import type { InFlight } from "../in-flight.ts";
import type { Plan } from "../plan.ts";
import type { RequestContext } from "../request-context.ts";
import { exchangeTimeouts } from "../route-runtime.ts";
import { closeCodes, FrameEncoder, MAX_MESSAGE_BYTES } from "../websocket/frame.ts";
import { Opening, type Switched } from "../websocket/opening.ts";
import type { SessionTimes } from "../websocket/peer-watch.ts";
import { type SessionPath, WebSocketSession } from "../websocket/session.ts";

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

export interface WebSocketProxyOptions {
  /** Handshakes count as requests in flight until they are answered. */
  readonly inFlight: InFlight;
  /** How many are open, whenever that changes. */
  onCount(open: number): void;
  /** A handshake failed. */
  report(context: RequestContext, error: ProxyError): void;
  /** A handshake was refused, or the WebSocket that it opened has ended; once for each. */
  ended(context: RequestContext, status: number): void;
  /** A client has left while a target was asked. */
  aborted(context: RequestContext): void;
  readonly times?: WebSocketTimes | undefined;
}

/** The WebSockets of one worker. They belong to no version of the configuration: a change leaves them alone. */
export interface WebSockets {
  readonly proxy: WebSocketProxy;
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

export function createWebSocketProxy(options: WebSocketProxyOptions): WebSockets {
  return new SessionSet(options);
}

class SessionSet implements WebSockets {
  readonly #options: WebSocketProxyOptions;
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

  constructor(options: WebSocketProxyOptions) {
    this.#options = options;
    const { idleSeconds = IDLE_SECONDS, closingSeconds = CLOSING_SECONDS } = options.times ?? {};
    this.#times = { idle: idleSeconds * 1000, closing: closingSeconds * 1000 };
  }

  get size(): number {
    return this.#sessions.size;
  }

  readonly proxy: WebSocketProxy = (plan) => {
    const { inFlight, report, ended, aborted } = this.#options;
    const owner = {
      inFlight,
      report: (failed: Plan, error: ProxyError) => report(failed.context, error),
      aborted: (left: Plan) => aborted(left.context),
      switched: (opened: Plan, switched: Switched) => this.#open(opened, switched),
    };
    return new Promise((resolve) => {
      const answer = (response: Response | undefined): void => {
        if (response !== undefined) ended(plan.context, response.status);
        resolve(response);
      };
      new Opening(owner, plan, answer).begin();
    });
  };

  #open(plan: Plan, { target, connection, fields, rest, leave }: Switched): boolean {
    const { context, route, service } = plan;
    const session = new WebSocketSession({
      path: { routeId: route.id, serviceId: service.id, targetId: target.id },
      connection,
      encoder: this.#encoder,
      writeTimeout: exchangeTimeouts(route, service).write,
      probe: this.#probe,
      now: performance.now(),
      onEnd: () => {
        leave();
        this.#remove(session);
        context.record.bytesIn = session.bytesIn;
        context.record.bytesOut = session.bytesOut;
        this.#options.ended(context, 101);
      },
    });
    // Bun opens the client's side before this returns.
    if (!context.server.upgrade(context.request, { headers: fields, data: session })) return false;
    this.#sessions.add(session);
    this.#startClock();
    this.#options.onCount(this.#sessions.size);
    if (rest.length > 0) session.received(rest);
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
