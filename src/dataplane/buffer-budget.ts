// Response bodies that are buffered before they are sent: how many bytes a worker may hold, and which wait too long; knows no socket.

/** A body whose end is awaited. */
export interface BufferedBody {
  /** When its last byte came, from `performance.now()`. */
  readonly lastByteAt: number;
  /** Sends what is there and streams the rest. Must not throw. */
  startStreaming(): void;
}

/** A body whose next byte takes longer than this is streamed, so that the first byte is never held back for long. */
const MAX_WAIT_MS = 20;
const LOOK_EVERY_MS = 10;

export class BufferBudget {
  #limit: number;
  #held = 0;
  readonly #waiting = new Set<BufferedBody>();
  #timer: Timer | null = null;

  /** `limit`: bytes that one worker may hold. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  setLimit(limit: number): void {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  /** False: no room, stream instead. Give the bytes back with `release`. */
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
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  unwatch(body: BufferedBody): void {
    this.#waiting.delete(body);
  }

  #look(): void {
    if (this.#waiting.size === 0) {
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    const before = performance.now() - MAX_WAIT_MS;
    for (const body of [...this.#waiting]) if (body.lastByteAt <= before) body.startStreaming();
  }
}
