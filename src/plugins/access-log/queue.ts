// Records on their way to one sink: bounded, in batches, again after a failure, and never in the way of a request; knows no sink.
import type { PluginKit } from "../../pdk/kit.ts";

/** One request or connection, as it is written down. */
export interface Entry {
  readonly line: string;
  /** Milliseconds since 1970 at which it came. */
  readonly at: number;
  /** 0: a stream connection. */
  readonly status: number;
  readonly trace: { readonly traceId: string; readonly spanId: string } | null;
}

/** Takes batches, one at a time. */
export interface Sink<Batch = readonly Entry[]> {
  /** Whether it takes bytes as they come and not messages: then all that waits goes at once, a little later. */
  readonly isStream?: boolean;
  /** Resolves when the batch was taken; throws when it was not. */
  send(batch: Batch): Promise<void>;
  close(): void;
}

/** What waits to be handed over, in the form that the sink takes. */
export interface Waiting<Batch> {
  readonly records: number;
  /** Characters or bytes of all lines. */
  readonly size: number;
  /** Takes out the first records, at most so many; one batch at a time is outside. */
  take(most: number): Batch;
}

/** A failure that another attempt would not change, or that says when to try again. */
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
  readonly waiting: Waiting<Batch>;
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

/** Characters or bytes after which nothing more may wait: long addresses must not fill the memory. */
const MAX_SIZE = 33_554_432;
/** How long a batch for a stream waits for more: under load, calls of the system cost more than all the rest. */
const SETTLE_MS = 20;
/** How often it is said that records are lost. */
const COMPLAINT_MS = 60_000;

export class Queue<Batch = readonly Entry[]> {
  readonly #options: QueueOptions<Batch>;
  readonly #waiting: Waiting<Batch>;
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

  /** Whether one more record may wait; if not, it is lost. Whoever adds it to what waits says `added`. */
  hasRoom(): boolean {
    const { maxEntries } = this.#options;
    const waiting = this.#waiting;
    // A queue that is shorter than a batch must not lose records only to let others come.
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

  /** By itself: in `added`, its closure would be made room for with each record. */
  #sendLater(): void {
    this.#timer = setTimeout(() => this.#send(), this.#options.maxDelayMs);
  }

  /** There is a whole batch. */
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

  /** Hands over what is there, once; resolves when all of it was taken or lost. */
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
      // Not all workers and gateways at the same moment.
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
    if (now - this.#toldAt < COMPLAINT_MS) return;
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
