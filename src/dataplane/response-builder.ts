// Makes the Response that Bun.serve writes with the fewest system calls; knows no upstream.
import { free, passedOn } from "./passed-on.ts";

/** A part of a body, as it came from the socket. */
export type Piece = Uint8Array;

export interface ResponseParts {
  readonly status: number;
  readonly fields: Headers;
  readonly hasContentType: boolean;
  /** Whether `fields` holds a Content-Length. */
  readonly hasLength: boolean;
  /** Whether the request was HEAD; default false. */
  readonly isHead?: boolean;
  /** Whether somebody else goes on holding the pieces; default false: they are used up. */
  readonly isShared?: boolean;
}

/**
 * An asynchronous Response with a larger plain body is written field by field, a system call and a packet for each: 30 and
 * more, 90 to 190 microseconds. Given as a direct stream it is one call and keeps its Content-Length (`make bench`, 20 KB).
 */
const DIRECT_FROM_BYTES = 15_000;

/**
 * A response whose whole body is there, in pieces. They are used up unless they are shared: nobody else may hold them.
 */
export function completeResponse(parts: ResponseParts, pieces: readonly Piece[]): Response {
  const { status, fields, isShared = false } = parts;
  const [first] = pieces;
  if (first === undefined) {
    // Given nothing, Bun would answer HEAD with a length of 0, which the same GET does not have.
    const isUnknown = parts.isHead === true && !parts.hasLength && status !== 204 && status !== 304;
    return new Response(isUnknown ? nothing() : null, { status, headers: fields });
  }
  let size = 0;
  for (const piece of pieces) size += piece.byteLength;
  // Bun gives a body without Content-Type one of its own, unless it is a stream.
  if (size < DIRECT_FROM_BYTES && parts.hasContentType) {
    const body = pieces.length === 1 ? first : Buffer.concat(pieces);
    const response = new Response(body as BodyInit, { status, headers: fields });
    if (!isShared) free(pieces);
    return response;
  }
  const headers = parts.hasLength ? fields : withField(fields, "Content-Length", String(size));
  return new Response(direct(pieces, size, isShared), { status, headers });
}

/** All pieces in one go. */
function direct(pieces: readonly Piece[], size: number, isShared: boolean): ReadableStream {
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    // Written one by one: the stream puts them together itself, and joining them before would copy them twice.
    pull(controller) {
      for (const piece of pieces) controller.write(piece);
      if (!isShared) free(pieces);
      controller.end();
    },
  };
  // lib.dom does not know direct streams, which are Bun's own.
  return new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>, {
    highWaterMark: size + 1,
  });
}

/** A body of unknown length that ends at once. */
function nothing(): ReadableStream {
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull: (controller) => void controller.end(),
  };
  return new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>);
}

/** A copy with one field more. */
function withField(fields: Headers, name: string, value: string): Headers {
  const copy = new Headers(fields);
  copy.set(name, value);
  return copy;
}

/** Bytes that may wait in a streamed body before the target is paused. */
const STREAM_BUFFER_BYTES = 262_144;

export interface StreamSource {
  /** The client has room again. */
  wanted(): void;
  /** The client went away. */
  cancelled(): void;
}

/** What Bun gives the `pull` of a direct stream. */
interface DirectController {
  /** Copies the bytes; a promise when the client should be waited for. */
  write(bytes: Uint8Array): number | Promise<number>;
  end(): void;
}

/**
 * A body that is passed on as it comes. A direct stream copies pieces at once, so that their memory is given back and not
 * left to the garbage collector: a gigabyte in pieces would grow the worker by 50 MB.
 */
export class StreamedBody {
  readonly stream: ReadableStream<Uint8Array>;
  /** True until the first bytes were passed on. */
  isEmpty = true;
  readonly #source: StreamSource;
  readonly #isShared: boolean;
  readonly #over = Promise.withResolvers<void>();
  #controller: DirectController | null = null;
  /** Pieces from before the client was ready. */
  #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #isOver = false;
  #isFull = false;

  /** `isShared`: somebody else goes on holding the pieces. */
  constructor(source: StreamSource, { isShared = false } = {}) {
    this.#source = source;
    this.#isShared = isShared;
    const direct: Bun.DirectUnderlyingSource<Uint8Array> = {
      type: "direct",
      pull: (controller) => this.#begin(controller as unknown as DirectController),
      cancel: () => this.#cancelled(),
    };
    this.stream = new ReadableStream<Uint8Array>(direct as unknown as UnderlyingSource<Uint8Array>);
  }

  /** Passes bytes on; false when the source should pause. */
  push(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    if (this.#isOver) return true;
    if (this.#controller !== null) return this.#write(this.#controller, chunk);
    this.#early.push(chunk);
    this.#earlyBytes += chunk.byteLength;
    return this.#earlyBytes < STREAM_BUFFER_BYTES;
  }

  /** The target has sent everything; `done` is called when nothing is left to pass on. */
  end(done: () => void): void {
    this.#close();
    done();
  }

  /** Breaks the client's response off: HTTP/1.1 is reset, HTTP/2 gets RST_STREAM. */
  fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.reject(error);
  }

  /** Resolves at the end of the body: the stream ends when the promise does. */
  #begin(controller: DirectController): Promise<void> {
    this.#controller = controller;
    const isPaused = this.#earlyBytes >= STREAM_BUFFER_BYTES;
    for (const chunk of this.#early.splice(0)) this.#write(controller, chunk);
    if (this.#isOver) controller.end();
    else if (isPaused && !this.#isFull) this.#source.wanted();
    return this.#over.promise;
  }

  #write(controller: DirectController, chunk: Uint8Array): boolean {
    const written = controller.write(chunk);
    if (this.#isShared) passedOn.leave(chunk);
    else passedOn.free(chunk);
    if (typeof written === "number") return !this.#isFull;
    this.#isFull = true;
    written.then(
      () => {
        this.#isFull = false;
        if (!this.#isOver) this.#source.wanted();
      },
      () => {},
    );
    return false;
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#controller?.end();
    this.#over.resolve();
  }

  #cancelled(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.resolve();
    this.#source.cancelled();
  }
}
