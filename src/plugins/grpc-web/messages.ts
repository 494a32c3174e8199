// The framing of gRPC-Web: checks messages of requests, and writes trailers as the last part of a body; knows no request.
//
// Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md

/** Bytes before each message: a flag, then the length. */
const PREFIX_BYTES = 5;
/** The flag of a frame with trailers. */
const TRAILERS = 0x80;

export type MessageProblem = "malformed" | "too_large";

/** Follows the messages of a request as its bytes pass, and holds none of them. */
export class MessageCheck {
  readonly #maxBytes: number;
  #prefixBytes = 0;
  #length = 0;
  /** Bytes of the current message that are still to come. */
  #left = 0;

  /** `maxBytes`: of a message without its prefix; 0: no limit. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Null: no problem so far. */
  push(chunk: Uint8Array): MessageProblem | null {
    let at = 0;
    while (at < chunk.byteLength) {
      if (this.#left > 0) {
        const passed = Math.min(this.#left, chunk.byteLength - at);
        this.#left -= passed;
        at += passed;
        continue;
      }
      const problem = this.#readPrefix(chunk[at++] ?? 0);
      if (problem !== null) return problem;
    }
    return null;
  }

  #readPrefix(byte: number): MessageProblem | null {
    // 0: plain, 1: compressed. Requests have no trailers.
    if (this.#prefixBytes === 0 && byte > 1) return "malformed";
    if (this.#prefixBytes > 0) this.#length = this.#length * 256 + byte;
    if (++this.#prefixBytes < PREFIX_BYTES) return null;
    this.#left = this.#length;
    this.#length = 0;
    this.#prefixBytes = 0;
    return this.#maxBytes > 0 && this.#left > this.#maxBytes ? "too_large" : null;
  }

  /** The request ends here. */
  end(): MessageProblem | null {
    return this.#left > 0 || this.#prefixBytes > 0 ? "malformed" : null;
  }
}

/** The trailers as a frame: lower-case names, one field a line. */
export function trailerFrame(fields: Iterable<readonly [name: string, value: string]>): Buffer {
  let lines = "";
  for (const [name, value] of fields) lines += `${name.toLowerCase()}: ${value}\r\n`;
  // Header fields are bytes, not UTF-8 text.
  const text = Buffer.from(lines, "latin1");
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix[0] = TRAILERS;
  prefix.writeUInt32BE(text.byteLength, 1);
  return Buffer.concat([prefix, text]);
}
