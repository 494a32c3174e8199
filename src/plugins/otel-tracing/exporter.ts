// Sends spans to a collector in batches: bounded, with retries, without blocking requests; knows no span.
import type { Callout, PluginKit } from "../../pdk/kit.ts";
import { writeRequest } from "./span.ts";

export interface ExporterOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Serialized resource attributes. */
  readonly resource: string;
  readonly maxBatch: number;
  readonly maxDelayMs: number;
  readonly maxQueue: number;
  readonly maxRetryMs: number;
  readonly timeoutMs: number;
  readonly callout: Callout;
  readonly log: PluginKit["log"];
  readonly lost: PluginKit["dropped"];
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
/** Retryable statuses of the OTLP specification. */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Interval of log lines about dropped spans. */
const COMPLAINT_MS = 60_000;

/** Sends one batch at a time; further spans wait in a queue, and are dropped when it is full. */
export class Exporter {
  readonly #options: ExporterOptions;
  #waiting: string[] = [];
  #timer: Timer | null = null;
  #isSending = false;
  #isClosed = false;
  /** Ends a pause. */
  #endPause: (() => void) | null = null;
  /** Closed: the queue stays empty. */
  readonly #sent = Promise.withResolvers<void>();
  #dropped = 0;
  #toldDropped = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  /** Dropped spans. */
  get dropped(): number {
    return this.#dropped;
  }

  add(spans: readonly string[]): void {
    const { maxQueue, maxBatch } = this.#options;
    if (this.#waiting.length + spans.length > maxQueue) {
      this.#drop(spans.length, "the queue is full");
      return;
    }
    this.#waiting.push(...spans);
    if (this.#isSending) return;
    if (this.#waiting.length >= maxBatch) this.#send();
    else this.#schedule();
  }

  /** Sends the queue, once; resolves when all of it was sent or dropped. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#endPause?.();
    this.#send();
    return this.#isSending ? this.#sent.promise : Promise.resolve();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#send(), this.#options.maxDelayMs);
  }

  #send(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#isSending || this.#waiting.length === 0) return;
    const { maxBatch, resource } = this.#options;
    const spans = this.#waiting.slice(0, maxBatch);
    this.#waiting = this.#waiting.slice(maxBatch);
    this.#isSending = true;
    void this.#deliver(writeRequest(resource, spans), spans.length).finally(() => {
      this.#isSending = false;
      if (this.#waiting.length >= maxBatch || this.#isClosed) this.#send();
      else if (this.#waiting.length > 0) this.#schedule();
      if (this.#isClosed && !this.#isSending) this.#sent.resolve();
    });
  }

  async #deliver(body: string, count: number): Promise<void> {
    const startedAt = performance.now();
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#try(body);
      if (outcome.isDone) return;
      const backOff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
      // Jitter, so that workers and gateways do not retry at the same moment.
      const pause = outcome.retryAfterMs ?? backOff * (0.5 + Math.random() / 2);
      const isLate = performance.now() - startedAt + pause > this.#options.maxRetryMs;
      if (!outcome.mayRetry || this.#isClosed || isLate) {
        this.#drop(count, outcome.why);
        return;
      }
      await this.#pause(pause);
    }
  }

  #pause(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    this.#endPause = resolve;
    return promise.finally(() => clearTimeout(timer));
  }

  async #try(body: string): Promise<Outcome> {
    const { url, headers, timeoutMs, callout } = this.#options;
    try {
      const response = await callout({
        url,
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        timeoutMs,
      });
      const { status } = response;
      if (status >= 200 && status < 300) return DONE;
      return {
        isDone: false,
        mayRetry: AGAIN.has(status),
        retryAfterMs: retryAfter(response.headers.get("retry-after")),
        why: `the collector responded ${status}`,
      };
    } catch (error) {
      const why = error instanceof Error ? error.message : "the collector did not respond";
      return { isDone: false, mayRetry: true, retryAfterMs: null, why };
    }
  }

  #drop(count: number, why: string): void {
    this.#dropped += count;
    this.#options.lost(count);
    const now = performance.now();
    if (now - this.#toldAt < COMPLAINT_MS) return;
    this.#toldAt = now;
    const spans = this.#dropped - this.#toldDropped;
    this.#toldDropped = this.#dropped;
    this.#options.log("warn", "spans were dropped", { spans, in_all: this.#dropped, why });
  }
}

interface Outcome {
  readonly isDone: boolean;
  readonly mayRetry: boolean;
  readonly retryAfterMs: number | null;
  readonly why: string;
}

const DONE: Outcome = { isDone: true, mayRetry: false, retryAfterMs: null, why: "" };

/** RFC 9110 section 10.2.3; ignores dates, because clocks differ. */
const retryAfter = (value: string | null) =>
  value !== null && /^\d{1,5}$/.test(value) ? Number(value) * 1000 : null;
