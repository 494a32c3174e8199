// Bytes that have arrived and wait, in one piece; knows no message.

const EMPTY = Buffer.alloc(0);
/** The part of a read below which what waits is copied: a few bytes would keep all of it in memory. */
const SMALL = 4;

export class ByteQueue {
  /** Of the bytes that wait. */
  length = 0;
  #bytes: Buffer = EMPTY;
  #start = 0;
  /** Whether `#bytes` belongs to the queue, which then may append to it. */
  #isOwn = false;

  /** Not a copy: valid until the next `push`. */
  get bytes(): Buffer {
    return this.length === this.#bytes.length
      ? this.#bytes
      : this.#bytes.subarray(this.#start, this.#start + this.length);
  }

  push(chunk: Buffer): void {
    if (this.length > 0) return this.#append(chunk);
    this.#bytes = chunk;
    this.#isOwn = false;
    this.#start = 0;
    this.length = chunk.length;
  }

  /** Call it when bytes go on waiting: copies them when they are a small part of a longer read. */
  settle(): void {
    const { length } = this;
    if (this.#isOwn || length === 0 || length * SMALL >= this.#bytes.buffer.byteLength) return;
    this.#bytes = Buffer.from(this.bytes);
    this.#start = 0;
  }

  /** Grows by doubling, so that bytes that come one by one cost no more than others. */
  #append(chunk: Buffer): void {
    const { length } = this;
    const end = this.#start + length;
    if (!this.#isOwn || end + chunk.length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length + chunk.length, 2 * length, 512));
      this.#bytes.copy(grown, 0, this.#start, end);
      this.#bytes = grown;
      this.#start = 0;
      this.#isOwn = true;
    }
    chunk.copy(this.#bytes, this.#start + length);
    this.length += chunk.length;
  }

  /** Removes the first bytes. */
  drop(size: number): void {
    if (size >= this.length) return this.clear();
    this.#start += size;
    this.length -= size;
  }

  clear(): void {
    this.#bytes = EMPTY;
    this.#start = 0;
    this.length = 0;
  }
}
