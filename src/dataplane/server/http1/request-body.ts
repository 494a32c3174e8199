// The body of one HTTP/1.1 request as it arrives: its framing (RFC 9112 section 6); knows no socket.
import { partOf } from "../../buffer-release.ts";
import { BodyProblem, failures } from "../../error.ts";
import { ChunkedDecoder } from "../../upstream/chunked-decoder.ts";
import { ReceivedBody } from "../received-body.ts";
import { CHUNKED } from "./request-parser.ts";

/** Bytes of a body that are read and dropped after the response, so that the connection can be used again. */
export const MAX_DROPPED_BYTES = 8_388_608;

export class Http1Body extends ReceivedBody {
  readonly #decoder: ChunkedDecoder | null;
  readonly #keep = (piece: Buffer): void => this.add(piece);
  #left: number;

  /** `length`: bytes, or `CHUNKED`. `onRead`: `unread` has become less. */
  constructor(length: number, onRead: () => void) {
    super(onRead);
    this.#decoder = length === CHUNKED ? new ChunkedDecoder(true) : null;
    this.#left = length;
  }

  /** Takes bytes from the connection; returns how many belong to the body. A malformed body fails and takes all. */
  take(bytes: Buffer): number {
    if (this.failure !== null) return bytes.length;
    if (this.#decoder !== null) return this.#decode(this.#decoder, bytes);
    const size = Math.min(this.#left, bytes.length);
    this.#left -= size;
    this.add(partOf(bytes, 0, size));
    if (this.#left === 0) this.complete();
    return size;
  }

  #decode(decoder: ChunkedDecoder, bytes: Buffer): number {
    try {
      const used = decoder.push(bytes, this.#keep);
      if (!decoder.done) return used;
      this.trailers = decoder.trailers;
      this.complete();
      return used;
    } catch {
      this.fail(new BodyProblem(failures.badRequest("a chunk of the request body is malformed")));
      return bytes.length;
    }
  }

  /** Whether the connection cannot be used for another request: its end is unknown, or too much is left to drop. */
  get isBroken(): boolean {
    return this.failure !== null || this.#left > MAX_DROPPED_BYTES;
  }
}
