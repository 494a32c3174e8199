// Event streams (server-sent events, HTML standard section 9.2): opens, feeds and closes them; knows no kind of event.
import type { Clock } from "../clock.ts";
import type { EventHub, SubscribeOptions } from "../control/events.ts";
import type { Principal } from "../control/principal.ts";
import { ApiError } from "../model/error.ts";

/** One event on the wire; the data is JSON. Id null: the last event id stays that of the event before. */
interface SentEvent {
  readonly id: string | null;
  readonly kind: string;
  readonly data: string;
}

/** One client's position in the events. */
export interface EventReader {
  /** The next event; null: none yet. */
  next(): SentEvent | null;
  /** Id up to which the client has received everything; empty: there are no ids. */
  readonly position: string;
  close(): void;
}

export interface EventStreamsOptions {
  readonly hub: EventHub;
  readonly clock: Clock;
  /** Whether a principal would still be admitted. */
  readonly isStillValid: (principal: Principal) => boolean;
  /** Milliseconds between comments on an idle stream. Default: 15 seconds. */
  readonly commentMs?: number | undefined;
  /** Maximum number of streams, in all and per client. Default: 2000 and 1000. */
  readonly limits?: { readonly all: number; readonly each: number } | undefined;
}

const COMMENT_MS = 15_000;
const LIMITS = { all: 2000, each: 1000 };
/** Milliseconds until a client reconnects. */
const RETRY_MS = 3000;
/** The longest delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // Disables the buffering of an nginx in front.
  "x-accel-buffering": "no",
};

/** Whether a response is one of these streams. */
export const isEventStream = (response: Response) =>
  response.headers.get("content-type") === headers["content-type"];

/** All open streams. Each ends as soon as its client would no longer be admitted. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #open = new Set<OpenStream>();
  #isClosed = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
  }

  /** Throws a 429 when there are too many. */
  open(principal: Principal, wanted: Omit<SubscribeOptions, "role">): Response {
    const { hub } = this.#options;
    return this.openFor(principal, (wake) =>
      hub.subscribe({ ...wanted, role: principal.role }, wake),
    );
  }

  /** The same for events of another source; `subscribe` gets the function to call when events may be available. */
  openFor(principal: Principal, subscribe: (wake: () => void) => EventReader): Response {
    this.#requireRoom(principal);
    const { commentMs = COMMENT_MS, isStillValid } = this.#options;
    const stream = new OpenStream(principal, {
      subscribe,
      commentMs,
      // A token whose expiry was moved forward expires without an event.
      mayGoOn: () => isStillValid(principal),
      onEnd: () => void this.#open.delete(stream),
    });
    this.#open.add(stream);
    this.#endAtExpiry(stream);
    return new Response(stream.body, { headers });
  }

  /** Closes the streams of principals that would no longer be admitted. */
  recheck(): void {
    for (const stream of this.#open)
      if (!this.#options.isStillValid(stream.principal)) stream.end();
  }

  /** Closes all streams; no new one is opened. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#open) stream.end();
  }

  #requireRoom(principal: Principal): void {
    const { all, each } = this.#options.limits ?? LIMITS;
    const caller = callerOf(principal);
    const own = [...this.#open].filter((stream) => callerOf(stream.principal) === caller).length;
    if (this.#isClosed || this.#open.size >= all || own >= each)
      throw new ApiError(429, "too many event streams are open", {
        headers: { "retry-after": "5" },
      });
  }

  #endAtExpiry(stream: OpenStream): void {
    const { expiresAt } = stream.principal;
    if (expiresAt === null) return;
    const msLeft = Date.parse(expiresAt) - this.#options.clock.now();
    if (msLeft <= 0) return stream.end();
    const timer = setTimeout(() => this.#endAtExpiry(stream), Math.min(msLeft, MAX_TIMER_MS));
    stream.onEnd(() => clearTimeout(timer));
  }
}

const callerOf = ({ method, userId, tokenId, address }: Principal) =>
  `${method} ${userId ?? tokenId ?? address}`;

interface OpenStreamOptions {
  readonly subscribe: (wake: () => void) => EventReader;
  readonly commentMs: number;
  /** Called before each comment. */
  readonly mayGoOn: () => boolean;
  readonly onEnd: () => void;
}

/** One stream. It reads an event only when the client has read those before, so that nothing queues up here. */
class OpenStream {
  readonly principal: Principal;
  readonly body: ReadableStream<Uint8Array>;
  readonly #subscription: EventReader;
  readonly #endings: (() => void)[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #isWoken = false;

  constructor(principal: Principal, options: OpenStreamOptions) {
    this.principal = principal;
    this.#subscription = options.subscribe(() => this.#wake());
    const comments = setInterval(() => {
      if (options.mayGoOn()) this.#comment();
      else this.end();
    }, options.commentMs);
    this.onEnd(() => clearInterval(comments));
    this.onEnd(() => this.#subscription.close());
    this.onEnd(options.onEnd);
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
        // An id without data is no event, but the client stores it, so that it misses nothing if the connection ends at once.
        const opening = `retry: ${RETRY_MS}\nid: ${this.#subscription.position}\n\n`;
        controller.enqueue(Buffer.from(opening));
      },
      pull: () => this.#pump(),
      cancel: () => this.#finish(),
    });
  }

  onEnd(listener: () => void): void {
    this.#endings.push(listener);
  }

  end(): void {
    const controller = this.#controller;
    this.#finish();
    controller?.close();
  }

  #finish(): void {
    this.#controller = null;
    for (const listener of this.#endings.splice(0)) listener();
  }

  /** In a microtask, because a client that loses access in this turn must not receive the events of this turn. */
  #wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => {
      this.#isWoken = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#hasRoom()) {
      const event = this.#subscription.next();
      if (event === null) return;
      this.#controller?.enqueue(frameOf(event));
    }
  }

  #comment(): void {
    if (this.#hasRoom()) this.#controller?.enqueue(Buffer.from(":\n\n"));
  }

  #hasRoom(): boolean {
    return this.#controller !== null && (this.#controller.desiredSize ?? 0) > 0;
  }
}

/** JSON has no line ends in it, so the data is one line. */
function frameOf({ id, kind, data }: SentEvent): Uint8Array {
  return Buffer.from(`${id === null ? "" : `id: ${id}\n`}event: ${kind}\ndata: ${data}\n\n`);
}
