// Decodes base64 that arrives in chunks of any size; knows no request and no message.

/** The body is not valid base64. */
export class Base64Error extends Error {}

const INVALID = 255;
const PADDING = 64;

/** The value of each character code. */
const values = new Uint8Array(256).fill(INVALID);
for (const [value, character] of [
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
].entries())
  values[character.charCodeAt(0)] = value;

/**
 * Clients flush whenever they want, each time with padding (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md): text may
 * follow padding. Holds back at most three characters.
 */
export class Base64Decoder {
  /** Bits of the current four characters. */
  #bits = 0;
  #characters = 0;
  #padding = 0;

  /** Throws Base64Error. */
  push(chunk: Uint8Array): Uint8Array {
    const decoded = new Uint8Array(Math.ceil(((this.#characters + chunk.byteLength) * 3) / 4));
    let length = 0;
    for (const code of chunk) {
      this.#add(values[code] ?? INVALID);
      if (this.#characters < 4) continue;
      const bytes = 3 - this.#padding;
      for (let at = 0; at < bytes; at++) decoded[length++] = (this.#bits >> (16 - 8 * at)) & 255;
      this.#bits = 0;
      this.#characters = 0;
      this.#padding = 0;
    }
    return decoded.subarray(0, length);
  }

  #add(value: number): void {
    const isPadding = value === PADDING;
    if (
      value === INVALID ||
      (isPadding && this.#characters < 2) ||
      (!isPadding && this.#padding > 0)
    )
      throw new Base64Error("a character is not valid base64");
    if (isPadding) this.#padding++;
    this.#bits = (this.#bits << 6) | (isPadding ? 0 : value);
    this.#characters++;
  }

  /** The text ends here. Throws Base64Error. */
  end(): void {
    if (this.#characters > 0) throw new Base64Error("the base64 ends within four characters");
  }
}
