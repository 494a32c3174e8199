// Makes the Response that Bun.serve writes with the fewest system calls; knows no upstream.
import { streamedBytes } from "./streamed-bytes.ts";
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

/** Pieces below this size live in memory that cannot be given back one by one. */
const FREE_FROM_BYTES = 4096;

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
  const stream = new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>, {
    highWaterMark: size + 1,
  });
  return new Response(stream, { status, headers });
}

/**
 * Gives the memory of pieces that were copied out back at once. Left to the garbage collector, every request would get
 * fresh memory that is in no cache: 3 microseconds more at 20 KB, 18 at 100 KB (`make bench`), and three times the
 * resident memory under load.
 */
export function free(pieces: readonly Piece[]): void {
  for (const piece of pieces) {
    if (piece.byteLength < FREE_FROM_BYTES) continue;
    const { buffer } = piece;
    // Pieces of a chunked body share one buffer, and to transfer one twice would throw.
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
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

/** A body that is passed on as it comes. */
export class StreamedBody {
  readonly stream: ReadableStream<Uint8Array>;
  /** True until the first bytes were passed on. */
  isEmpty = true;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;

  constructor(source: StreamSource) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => source.wanted(),
        cancel: () => {
          this.#controller = null;
          source.cancelled();
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: STREAM_BUFFER_BYTES }),
    );
  }

  /** Passes bytes on; false when the source should pause. */
  push(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    streamedBytes.add(chunk.byteLength);
    this.#controller?.enqueue(chunk);
    return (this.#controller?.desiredSize ?? 1) > 0;
  }

  /** The target has sent everything; `done` is called when nothing is left to pass on. */
  end(done: () => void): void {
    this.#controller?.close();
    this.#controller = null;
    done();
  }

  /** Breaks the client's response off: HTTP/1.1 is reset, HTTP/2 gets RST_STREAM. */
  fail(error: Error): void {
    this.#controller?.error(error);
    this.#controller = null;
  }
}
