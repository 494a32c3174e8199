// Queues records for one sink: bounded, in batches, with retries, without blocking requests; knows no sink.
import type { PluginKit } from "../../pdk/kit.ts";

/** The record of one request or connection. */
export interface Entry {
  readonly line: string;
  /** Arrival in milliseconds since 1970. */
  readonly at: number;
  /** 0 for stream connections. */
  readonly status: number;
  readonly trace: { readonly traceId: string; readonly spanId: string } | null;
}

/** Sends batches, one at a time. */
export interface Sink<Batch = readonly Entry[]> {
  /** Whether it sends a byte stream instead of messages: then the whole queue is one batch, a little later. */
  readonly isStream?: boolean;
  /** Resolves when the batch was sent; throws on failure. */
  send(batch: Batch): Promise<void>;
  close(): void;
}

/** Pending records, in the format of the sink. */
export interface PendingRecords<Batch> {
  readonly records: number;
  /** Size of all lines, in characters or bytes. */
  readonly size: number;
  /** Removes the first records, at most so many; one batch at a time. */
  take(most: number): Batch;
}

/** A failure that is not retryable, or that has a retry time. */
export class SinkError extends Error {
  readonly mayRetry: boolean;
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    how: { readonly mayRetry?: boolean; readonly retryAfterMs?: number | null } = {},
  ) {
    super(message);
    this.mayRetry = how.mayRetry ?? true;
    this.retryAfterMs = how.retryAfterMs ?? null;
  }
}

export interface QueueOptions<Batch> {
  /** For log lines: `file`. */
  readonly name: string;
  readonly waiting: PendingRecords<Batch>;
  readonly sink: Sink<Batch>;
  readonly maxBatch: number;
  readonly maxDelayMs: number;
  readonly maxEntries: number;
  readonly retry: {
    readonly firstMs: number;
    readonly longestMs: number;
    readonly totalMs: number;
  };
  readonly kit: Pick<PluginKit, "log" | "dropped">;
}

/** Size limit of the queue, because long URLs must not fill the memory. */
const MAX_SIZE = 33_554_432;
/** How long a batch for a stream waits for more records: under load, system calls cost more than everything else. */
const SETTLE_MS = 20;
/** Interval of log lines about dropped records. */
const REPORT_MS = 60_000;

export class Queue<Batch = readonly Entry[]> {
  readonly #options: QueueOptions<Batch>;
  readonly #waiting: PendingRecords<Batch>;
  #timer: Timer | null = null;
  #isSettling = false;
  #isSending = false;
  #isClosed = false;
  #endPause: (() => void) | null = null;
  readonly #ended = Promise.withResolvers<void>();
  #lost = 0;
  #toldLost = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: QueueOptions<Batch>) {
    this.#options = options;
    this.#waiting = options.waiting;
  }

  /** Whether there is room for one more record; otherwise it is dropped. After adding one, call `added`. */
  hasRoom(): boolean {
    const { maxEntries } = this.#options;
    const waiting = this.#waiting;
    // A queue shorter than a batch must not drop records while it waits for more.
    if (this.#isSettling && waiting.records >= maxEntries) this.#send();
    if (waiting.records < maxEntries && waiting.size < MAX_SIZE) return true;
    this.#lose(1, "the queue is full");
    return false;
  }

  added(): void {
    if (this.#isSending || this.#isSettling) return;
    if (this.#waiting.records >= this.#options.maxBatch || this.#isClosed) this.#sendFull();
    else if (this.#timer === null) this.#sendLater();
  }

  /** A method of its own: in `added`, each record would allocate the closure. */
  #sendLater(): void {
    this.#timer = setTimeout(() => this.#send(), this.#options.maxDelayMs);
  }

  /** The batch is complete. */
  #sendFull(): void {
    const { sink, maxDelayMs } = this.#options;
    if (sink.isStream !== true || this.#isClosed) {
      this.#send();
      return;
    }
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#isSettling = true;
    this.#timer = setTimeout(() => this.#send(), Math.min(SETTLE_MS, maxDelayMs));
  }

  /** Sends the queue, once; resolves when all of it was sent or dropped. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#endPause?.();
    this.#send();
    if (!this.#isSending) this.#end();
    return this.#ended.promise;
  }

  #end(): void {
    this.#options.sink.close();
    this.#ended.resolve();
  }

  #send(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isSettling = false;
    const waiting = this.#waiting;
    if (this.#isSending || waiting.records === 0) return;
    const { maxBatch, sink } = this.#options;
    const before = waiting.records;
    const batch = waiting.take(sink.isStream === true ? before : maxBatch);
    this.#isSending = true;
    void this.#deliver(batch, before - waiting.records).finally(() => {
      this.#isSending = false;
      if (waiting.records >= maxBatch || this.#isClosed) this.#sendFull();
      else if (waiting.records > 0 && this.#timer === null) this.#sendLater();
      if (this.#isClosed && !this.#isSending) this.#end();
    });
  }

  async #deliver(batch: Batch, records: number): Promise<void> {
    const { sink, retry } = this.#options;
    const startedAt = performance.now();
    for (let attempt = 0; ; attempt++) {
      let failure: Error;
      try {
        await sink.send(batch);
        return;
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error));
      }
      const { mayRetry, retryAfterMs } =
        failure instanceof SinkError ? failure : { mayRetry: true, retryAfterMs: null };
      const backOff = Math.min(retry.longestMs, retry.firstMs * 2 ** attempt);
      // Jitter, so that workers and gateways do not retry at the same moment.
      const pause = retryAfterMs ?? backOff * (0.5 + Math.random() / 2);
      const isLate = performance.now() - startedAt + pause > retry.totalMs;
      if (!mayRetry || this.#isClosed || isLate) {
        this.#lose(records, failure.message);
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

  #lose(count: number, why: string): void {
    const { kit, name } = this.#options;
    kit.dropped(count);
    this.#lost += count;
    const now = performance.now();
    if (now - this.#toldAt < REPORT_MS) return;
    this.#toldAt = now;
    const records = this.#lost - this.#toldLost;
    this.#toldLost = this.#lost;
    kit.log("warn", "records of an access log were dropped", {
      sink: name,
      records,
      in_all: this.#lost,
      why,
    });
  }
}
