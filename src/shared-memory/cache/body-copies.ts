// A worker's copies of larger bodies, so that not each hit copies from shared memory; knows no memory and no key.

/** Of one body, and of all bodies of a worker. */
const MAX_BODY_BYTES = 1_048_576;
const MAX_BYTES = 16_777_216;
/** A body is copied when it is requested twice in this time. */
const SOON_MS = 10_000;
/** Requests that are remembered, by slots of block numbers. */
const SLOTS = 1024;

interface BodyCopy {
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** By the first block of an entry. A copy is of one sequence number of that block: the caller tests that it is the current one. */
export class BodyCopies {
  /** The least recently used first. */
  readonly #copies = new Map<number, BodyCopy>();
  #bytes = 0;
  readonly #requested = new Int32Array(SLOTS);
  readonly #requestedAt = new Float64Array(SLOTS);
  readonly #now: () => number;

  /** `now`: milliseconds, for tests. */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** Of all copies. */
  get byteLength(): number {
    return this.#bytes;
  }

  get(block: number, sequence: number): Uint8Array | null {
    const copy = this.#copies.get(block);
    if (copy === undefined) return null;
    this.#copies.delete(block);
    if (copy.sequence !== sequence) {
      this.#bytes -= copy.bytes.byteLength;
      return null;
    }
    this.#copies.set(block, copy);
    return copy.bytes;
  }

  /** After `get` has found none: stores the copy if the body was requested a short time ago. The bytes must not change. */
  offer(block: number, sequence: number, bytes: Uint8Array): void {
    if (bytes.byteLength > MAX_BODY_BYTES || !this.#isRequestedAgain(block)) return;
    this.#copies.set(block, { sequence, bytes });
    this.#bytes += bytes.byteLength;
    for (const [oldest, copy] of this.#copies) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#copies.delete(oldest);
      this.#bytes -= copy.bytes.byteLength;
    }
  }

  #isRequestedAgain(block: number): boolean {
    const slot = block % SLOTS;
    const now = this.#now();
    const isSame = this.#requested[slot] === block;
    const isSoon = now - (this.#requestedAt[slot] ?? 0) < SOON_MS;
    this.#requested[slot] = block;
    this.#requestedAt[slot] = now;
    return isSame && isSoon;
  }
}
