// What has arrived of a request body and waits to be read; knows no framing and no socket.
import type { FieldPairs } from "../../http/fields.ts";
import type { BodySource } from "../client-body.ts";

type Piece = Awaited<ReturnType<BodySource["read"]>>;

const DONE: Piece = { done: true };

export class ReceivedBody implements BodySource {
  /** All of it has arrived. */
  isComplete = false;
  /** Nothing of it is kept any more: the response is complete. */
  isDropped = false;
  /** After the body; null: none. */
  trailers: FieldPairs | null = null;
  protected failure: Error | null = null;
  /** Bytes that no reader has taken. */
  #waiting = 0;
  /** Of the piece that the reader has and may be working on. */
  #taken = 0;
  readonly #onRead: () => void;
  #pieces: Buffer[] = [];
  #reader: { resolve(piece: Piece): void; reject(error: Error): void } | null = null;

  /** `onRead`: `unread` has become less. */
  constructor(onRead: () => void) {
    this.#onRead = onRead;
  }

  /** Bytes that have arrived and are not passed on. */
  get unread(): number {
    return this.#waiting + this.#taken;
  }

  protected add(piece: Buffer): void {
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

  protected complete(): void {
    this.isComplete = true;
    if (this.#pieces.length === 0) this.#settle();
  }

  #settle(): void {
    const reader = this.#reader;
    this.#reader = null;
    if (this.failure === null) reader?.resolve(DONE);
    else reader?.reject(this.failure);
  }

  /** The rest will not come: the client has gone, or its framing is broken. */
  fail(error: Error): void {
    if (this.isComplete || this.failure !== null) return;
    this.failure = error;
    this.#settle();
  }

  read(): Promise<Piece> {
    const piece = this.#pieces.shift();
    const before = this.#taken;
    this.#taken = piece?.length ?? 0;
    this.#waiting -= this.#taken;
    if (before > 0) this.#onRead();
    if (piece !== undefined) return Promise.resolve({ done: false, value: piece });
    if (this.isComplete || this.isDropped) return Promise.resolve(DONE);
    if (this.failure !== null) return Promise.reject(this.failure);
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
