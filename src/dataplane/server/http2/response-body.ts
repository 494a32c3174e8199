// The body of a streamed HTTP/2 response: its length, and when its source pauses; knows no frame.
import type { BodyReader, BodyWriter } from "../client-stream.ts";
import { CODE } from "../../http2/frames.ts";
import type { SendQueue } from "../../http2/send-queue.ts";

/** The stream of a response. */
export interface ResponseStream {
  readonly queue: SendQueue;
  /** No more bytes follow. */
  endBody(): void;
  /** Breaks the response off, visibly. */
  reset(code: number): void;
  /** The queue has bytes. */
  ready(): void;
}

/** The connection of a response. */
export interface ResponseConnection {
  /** Sends what the windows allow now, without waiting for the end of the turn. */
  sendReady(): void;
  /** Bytes that the connection's window allows; 0 while the client does not read. */
  readonly room: number;
  /** Whether the client reads more slowly than bytes are written. */
  readonly isBehind: boolean;
}

/** What may wait beyond the window of the client. */
const MAX_WAITING_BYTES = 65_536;

interface WriterOptions {
  readonly reader: BodyReader;
  /** Whether other code still holds the pieces. */
  readonly isShared: boolean;
  /** Nothing is sent: HEAD, 204, 304. */
  readonly isEmpty: boolean;
  /** As declared; null: unknown. */
  readonly length: number | null;
}

export class Http2Writer implements BodyWriter {
  isEmpty = true;
  readonly #stream: ResponseStream;
  readonly #connection: ResponseConnection;
  readonly #options: WriterOptions;
  #left: number;
  #isOver = false;
  #isFull = false;
  /** Runs when all was sent. */
  #done: (() => void) | null = null;

  constructor(stream: ResponseStream, connection: ResponseConnection, options: WriterOptions) {
    this.#stream = stream;
    this.#connection = connection;
    this.#options = options;
    this.#left = options.length ?? Number.POSITIVE_INFINITY;
  }

  write(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    const size = chunk.byteLength;
    if (this.#isOver || this.#options.isEmpty || size === 0) return true;
    this.#left -= size;
    if (this.#left < 0) {
      this.fail();
      return true;
    }
    const stream = this.#stream;
    const connection = this.#connection;
    const { queue } = stream;
    queue.push(chunk, this.#options.isShared);
    stream.ready();
    if (queue.size >= MAX_WAITING_BYTES) {
      connection.sendReady();
      if (queue.size > 0 || connection.isBehind) this.#options.reader.behind?.();
    }
    const room = Math.min(queue.window, connection.room, MAX_WAITING_BYTES);
    this.#isFull = queue.size > Math.max(0, room);
    return !this.#isFull;
  }

  end(done: () => void): void {
    if (this.#isOver) return done();
    const { length, isEmpty } = this.#options;
    // Shorter than declared: the client must not take it for complete.
    if (length !== null && !isEmpty && this.#left > 0) {
      this.fail();
      return done();
    }
    this.#isOver = true;
    this.#done = done;
    this.#stream.endBody();
  }

  fail(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream.reset(CODE.internal);
  }

  // Called by the stream.

  /** All that was written is sent. */
  drained(): void {
    if (!this.#isFull || this.#isOver) return;
    this.#isFull = false;
    this.#options.reader.wanted();
  }

  /** The response is complete. */
  ended(): void {
    const done = this.#done;
    this.#done = null;
    done?.();
  }

  /** The client has gone. */
  closed(): void {
    this.ended();
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.reader.cancelled();
  }
}
