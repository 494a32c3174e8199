// The body of one HTTP/1.1 request as it arrives: its framing (RFC 9112 section 6) and what waits to be read; knows no socket.
import { partOf } from "../../../http/bytes.ts";
import type { BodySource } from "../../client-body.ts";
import { BodyProblem, failures } from "../../error.ts";
import type { FieldPairs } from "../../../http/fields.ts";
import { ChunkedDecoder } from "../../upstream/chunked-decoder.ts";
import { CHUNKED } from "./request-parser.ts";

/** Bytes of a body that are read and dropped after the response, so that the connection can be used again. */
export const MAX_DROPPED_BYTES = 8_388_608;

type Piece = Awaited<ReturnType<BodySource["read"]>>;

const DONE: Piece = { done: true };

export class Http1Body implements BodySource {
  /** All of it has arrived. */
  isComplete = false;
  /** Nothing of it is kept any more: the response is complete. */
  isDropped = false;
  /** Bytes that no reader has taken. */
  #waiting = 0;
  /** Of the piece that the reader has and may be working on. */
  #taken = 0;
  /** After a chunked body; null: none. */
  trailers: FieldPairs | null = null;
  readonly #decoder: ChunkedDecoder | null;
  readonly #onRead: () => void;
  readonly #keep = (piece: Buffer): void => this.#add(piece);
  #left: number;
  #pieces: Buffer[] = [];
  #failure: Error | null = null;
  #reader: { resolve(piece: Piece): void; reject(error: Error): void } | null = null;

  /** `length`: bytes, or `CHUNKED`. `onRead`: `unread` has become less. */
  constructor(length: number, onRead: () => void) {
    this.#decoder = length === CHUNKED ? new ChunkedDecoder(true) : null;
    this.#left = length;
    this.#onRead = onRead;
  }

  /** Bytes that have arrived and are not passed on. */
  get unread(): number {
    return this.#waiting + this.#taken;
  }

  /** Takes bytes from the connection; returns how many belong to the body. A malformed body fails and takes all. */
  take(bytes: Buffer): number {
    if (this.#failure !== null) return bytes.length;
    if (this.#decoder !== null) return this.#decode(this.#decoder, bytes);
    const size = Math.min(this.#left, bytes.length);
    this.#left -= size;
    this.#add(partOf(bytes, 0, size));
    if (this.#left === 0) this.#complete();
    return size;
  }

  #decode(decoder: ChunkedDecoder, bytes: Buffer): number {
    try {
      const used = decoder.push(bytes, this.#keep);
      if (!decoder.done) return used;
      this.trailers = decoder.trailers;
      this.#complete();
      return used;
    } catch {
      this.fail(new BodyProblem(failures.badRequest("a chunk of the request body is malformed")));
      return bytes.length;
    }
  }

  #add(piece: Buffer): void {
    if (this.isDropped || piece.length === 0) return;
    const reader = this.#reader;
    if (reader !== null) {
      this.#reader = null;
      this.#taken = piece.length;
      reader.resolve({ done: false, value: piece });
      return;
    }
    this.#pieces.push(piece);
    this.#waiting += piece.length;
  }

  #complete(): void {
    this.isComplete = true;
    if (this.#pieces.length === 0) this.#settle();
  }

  #settle(): void {
    const reader = this.#reader;
    this.#reader = null;
    if (this.#failure === null) reader?.resolve(DONE);
    else reader?.reject(this.#failure);
  }

  /** The rest will not come: the client has gone, or its framing is broken. */
  fail(error: Error): void {
    if (this.isComplete || this.#failure !== null) return;
    this.#failure = error;
    this.#settle();
  }

  /** Whether the connection cannot be used for another request: its end is unknown, or too much is left to drop. */
  get isBroken(): boolean {
    return this.#failure !== null || this.#left > MAX_DROPPED_BYTES;
  }

  read(): Promise<Piece> {
    const piece = this.#pieces.shift();
    const before = this.#taken;
    this.#taken = piece?.length ?? 0;
    this.#waiting -= this.#taken;
    if (before > 0) this.#onRead();
    if (piece !== undefined) return Promise.resolve({ done: false, value: piece });
    if (this.isComplete || this.isDropped) return Promise.resolve(DONE);
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  async cancel(): Promise<void> {
    this.drop();
  }

  /** Keeps nothing of what still arrives. */
  drop(): void {
    this.isDropped = true;
    this.#pieces = [];
    this.#waiting = 0;
    this.#taken = 0;
    const reader = this.#reader;
    this.#reader = null;
    reader?.resolve(DONE);
    this.#onRead();
  }
}
