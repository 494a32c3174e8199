// The delivery queue of one alert: ordered, bounded, with retries and backoff; knows no sink.
import type { Notice } from "./notice.ts";

export interface OutboxOptions {
  /** Rejects with a DeliveryError when it was not delivered. */
  readonly send: (notice: Notice, signal: AbortSignal) => Promise<unknown>;
  /** It was delivered or dropped: nothing more will be sent of it. */
  readonly done: (notice: Notice) => void;
  /** The notification was dropped after all attempts, or because the queue was full. */
  readonly lost: (notice: Notice, reason: string) => void;
  readonly now: () => number;
  /** Milliseconds between attempts; the last failure drops the notification. Default: a second to ten minutes. */
  readonly pauses?: readonly number[];
}

/** The state of an alert's delivery. */
export interface DeliveryStatus {
  /** Notifications in the queue. */
  readonly waiting: number;
  /** Notifications dropped since the start. */
  readonly lost: number;
  readonly last_sent_at: string | null;
  /** Error of the last attempt; null: it succeeded. */
  readonly last_error: string | null;
}

/** Why a notification was not delivered, without secrets. */
export class DeliveryError extends Error {}

export const idleDelivery: DeliveryStatus = {
  waiting: 0,
  lost: 0,
  last_sent_at: null,
  last_error: null,
};

const PAUSES = [1000, 5000, 30_000, 120_000, 600_000];
const MAX_WAITING = 100;

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #waiting: Notice[] = [];
  readonly #stopped = new AbortController();
  #isSending = false;
  #lost = 0;
  #lastSentAt: string | null = null;
  #lastError: string | null = null;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  get status(): DeliveryStatus {
    return {
      waiting: this.#waiting.length,
      lost: this.#lost,
      last_sent_at: this.#lastSentAt,
      last_error: this.#lastError,
    };
  }

  /** Returns at once. */
  put(notice: Notice): void {
    if (this.#waiting.length >= MAX_WAITING) {
      // The first one is being sent.
      const [oldest] = this.#waiting.splice(1, 1);
      if (oldest !== undefined) this.#give(oldest, "the queue is full");
    }
    this.#waiting.push(notice);
    if (!this.#isSending) void this.#run();
  }

  /** Aborts the delivery and sends nothing more. Returns what was not delivered, the oldest first. */
  stop(): readonly Notice[] {
    this.#stopped.abort();
    return this.#waiting.splice(0);
  }

  async #run(): Promise<void> {
    this.#isSending = true;
    for (let notice = this.#waiting[0]; notice !== undefined; notice = this.#waiting[0]) {
      const reason = await this.#deliver(notice);
      if (this.#stopped.signal.aborted) break;
      if (this.#waiting[0] === notice) this.#waiting.shift();
      if (reason !== null) this.#give(notice, reason);
      this.#options.done(notice);
    }
    this.#isSending = false;
  }

  /** Null after the delivery, else why it was dropped. */
  async #deliver(notice: Notice): Promise<string | null> {
    const { send, now, pauses = PAUSES } = this.#options;
    const { signal } = this.#stopped;
    for (let attempt = 0; ; attempt++) {
      try {
        await send(notice, signal);
        this.#lastSentAt = new Date(now()).toISOString();
        this.#lastError = null;
        return null;
      } catch (error) {
        // Other errors may hold anything, such as URLs with tokens.
        this.#lastError = error instanceof DeliveryError ? error.message : "unexpected error";
      }
      const pause = pauses[attempt];
      if (pause === undefined || signal.aborted) return this.#lastError;
      await pauseFor(pause, signal);
      if (signal.aborted) return this.#lastError;
    }
  }

  #give(notice: Notice, reason: string): void {
    this.#lost++;
    this.#options.lost(notice, reason);
  }
}

function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  // A retry must not delay the exit.
  timer.unref();
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise;
}
