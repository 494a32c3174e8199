// Bytes that have arrived and wait, in one piece; knows no message.

const EMPTY = Buffer.alloc(0);
/** A longer read is copied when little of it waits: a few bytes would keep all of it in memory. */
const SMALL = 4;

export class ByteQueue {
  #bytes: Buffer = EMPTY;
  #start = 0;
  #end = 0;
  /** Whether `#bytes` belongs to the queue, which then may append to it. */
  #isOwn = false;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Not a copy: valid until the next `push`. */
  get bytes(): Buffer {
    return this.#start === 0 && this.#end === this.#bytes.length
      ? this.#bytes
      : this.#bytes.subarray(this.#start, this.#end);
  }

  push(chunk: Buffer): void {
    if (this.length > 0) return this.#append(chunk);
    const isSmall = chunk.length * SMALL < chunk.buffer.byteLength;
    this.#bytes = isSmall ? Buffer.from(chunk) : chunk;
    this.#isOwn = false;
    this.#start = 0;
    this.#end = chunk.length;
  }

  /** Grows by doubling, so that bytes that come one by one cost no more than others. */
  #append(chunk: Buffer): void {
    const need = this.length + chunk.length;
    if (!this.#isOwn || this.#end + chunk.length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(need, 2 * this.length, 512));
      this.#bytes.copy(grown, 0, this.#start, this.#end);
      this.#bytes = grown;
      this.#end -= this.#start;
      this.#start = 0;
      this.#isOwn = true;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /** Removes the first bytes. */
  drop(size: number): void {
    this.#start += size;
    if (this.#start >= this.#end) this.clear();
  }

  clear(): void {
    this.#bytes = EMPTY;
    this.#start = 0;
    this.#end = 0;
  }
}
