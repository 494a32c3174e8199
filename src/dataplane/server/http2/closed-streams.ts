// Streams that the gateway has ended before the client has: what may still arrive on them; knows no frame.

/** The newest are remembered. */
const MAX_STREAMS = 1000;
/**
 * Milliseconds from a complete response to the reset of its stream, whose request is incomplete: curl 7.88 takes a reset for a
 * failure while it sends, and stops by itself once it has read the response.
 */
const RESET_AFTER_MS = 1000;

interface ClosedStream {
  /** Bytes that the client may still send, from before it knew. */
  room: number;
  /** When it must be reset; infinity: it was. */
  readonly resetAt: number;
}

export class ClosedStreams {
  readonly #streams = new Map<number, ClosedStream>();
  readonly #reset: (id: number) => void;

  /** `reset`: tells the client. */
  constructor(reset: (id: number) => void) {
    this.#reset = reset;
  }

  /** The client was sent a reset. */
  wasReset(id: number, room: number): void {
    this.#add(id, { room, resetAt: Number.POSITIVE_INFINITY });
  }

  /** The client has a complete response, and may send the rest of its request in vain. */
  linger(id: number, room: number): void {
    this.#add(id, { room, resetAt: performance.now() + RESET_AFTER_MS });
  }

  #add(id: number, stream: ClosedStream): void {
    if (this.#streams.size >= MAX_STREAMS) {
      const [oldest] = this.#streams.keys();
      if (oldest !== undefined) this.#drop(oldest);
    }
    this.#streams.set(id, stream);
  }

  #drop(id: number): void {
    const isLingering = (this.#streams.get(id)?.resetAt ?? Infinity) < Number.POSITIVE_INFINITY;
    this.#streams.delete(id);
    if (isLingering) this.#reset(id);
  }

  has(id: number): boolean {
    return this.#streams.has(id);
  }

  /** Bytes have arrived. False: more than the client's window allows. */
  take(id: number, bytes: number): boolean {
    const stream = this.#streams.get(id);
    if (stream === undefined) return true;
    stream.room -= bytes;
    return stream.room >= 0;
  }

  /** The client has ended or reset the stream as well. False: it is none of these. */
  ended(id: number): boolean {
    return this.#streams.delete(id);
  }

  /** Called about once a second. */
  tick(now: number): void {
    for (const [id, { resetAt, room }] of this.#streams) {
      if (now < resetAt || resetAt === Number.POSITIVE_INFINITY) continue;
      this.#reset(id);
      this.wasReset(id, room);
    }
  }
}
