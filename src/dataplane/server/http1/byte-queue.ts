// Bytes that have arrived and wait, in one piece; knows no message.

const EMPTY = Buffer.alloc(0);
/** The part of a read below which what waits is copied: a few bytes would keep all of it in memory. */
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
    this.#bytes = chunk;
    this.#isOwn = false;
    this.#start = 0;
    this.#end = chunk.length;
  }

  /** Call it when bytes go on waiting: copies them when they are a small part of a longer read. */
  settle(): void {
    const { length } = this;
    if (this.#isOwn || length === 0 || length * SMALL >= this.#bytes.buffer.byteLength) return;
    this.#bytes = Buffer.from(this.bytes);
    this.#start = 0;
    this.#end = length;
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
