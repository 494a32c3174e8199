// Random ids for traces and spans, made many at a time; knows no span.

/** Ids of a span that one call for random bytes is good for. */
const BATCH = 512;
const BYTES = 8;

/** Draws ids: asking for random bytes each time would cost more than all the rest. */
export class Ids {
  readonly #bytes = Buffer.alloc(BATCH * BYTES);
  #at = BATCH * BYTES;

  /** 16 hexadecimal digits, not all of them 0. */
  span(): string {
    for (;;) {
      if (this.#at === this.#bytes.length) {
        crypto.getRandomValues(this.#bytes);
        this.#at = 0;
      }
      const id = this.#bytes.toString("hex", this.#at, this.#at + BYTES);
      this.#at += BYTES;
      if (id !== "0000000000000000") return id;
    }
  }

  /** 32 hexadecimal digits. */
  trace(): string {
    return this.span() + this.span();
  }
}
