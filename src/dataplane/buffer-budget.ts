// The budget of a worker for buffered response bodies, in bytes and time; knows no socket.

/** A buffered body that is not complete yet. */
export interface BufferedBody {
  /** Arrival of its last byte, in `performance.now()`. */
  readonly lastByteAt: number;
  /** Sends what is buffered and streams the rest. Must not throw. */
  startStreaming(): void;
}

/** A body whose next byte takes longer is streamed, so that buffering delays the first byte only briefly. */
const MAX_WAIT_MS = 20;
const CHECK_MS = 10;

export class BufferBudget {
  #limit: number;
  #held = 0;
  readonly #waiting = new Set<BufferedBody>();
  #timer: Timer | null = null;

  /** `limit`: bytes that the worker may buffer. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  setLimit(limit: number): void {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  /** False: the budget is exhausted, stream instead. */
  reserve(bytes: number): boolean {
    if (this.#held + bytes > this.#limit) return false;
    this.#held += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }

  watch(body: BufferedBody): void {
    this.#waiting.add(body);
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS);
  }

  unwatch(body: BufferedBody): void {
    this.#waiting.delete(body);
  }

  #check(): void {
    if (this.#waiting.size === 0) {
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    const before = performance.now() - MAX_WAIT_MS;
    for (const body of [...this.#waiting]) if (body.lastByteAt <= before) body.startStreaming();
  }
}
