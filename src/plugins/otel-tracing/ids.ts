// Random ids for traces and spans, generated in bulk; knows no span.

/** Span ids per call for random bytes. */
const BATCH = 512;
const BYTES = 8;

/** Generates ids: random bytes for each one would cost more than everything else. */
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
