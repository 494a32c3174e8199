// Makes the Response that Bun.serve writes with the fewest system calls; knows no upstream.
import type { FieldList } from "./upstream/response-parser.ts";

/** A part of a body, as it came from the socket. */
export type Piece = Uint8Array;

export interface ResponseParts {
  readonly status: number;
  readonly fields: FieldList;
  readonly hasContentType: boolean;
  /** Whether `fields` holds a Content-Length. */
  readonly hasLength: boolean;
  /** Whether the request was HEAD; default false. */
  readonly isHead?: boolean;
}

/**
 * An asynchronous Response with a larger plain body is written field by field, a system call and a packet for each: 30 and
 * more, 90 to 190 microseconds. Given as a direct stream it is one call and keeps its Content-Length (`make bench`, 20 KB).
 */
const DIRECT_FROM_BYTES = 15_000;

/** A response whose whole body is there, in pieces. Throws TypeError when a field is not valid. */
export function completeResponse(parts: ResponseParts, pieces: readonly Piece[]): Response {
  const { status, fields } = parts;
  const [first] = pieces;
  if (first === undefined) {
    // Given nothing, Bun would answer HEAD with a length of 0, which the same GET does not have.
    const isUnknown = parts.isHead === true && !parts.hasLength && status !== 204 && status !== 304;
    return new Response(isUnknown ? nothing() : null, { status, headers: fields });
  }
  let size = 0;
  for (const piece of pieces) size += piece.byteLength;
  // Bun gives a body without Content-Type one of its own, unless it is a stream.
  if (size < DIRECT_FROM_BYTES && parts.hasContentType)
    return new Response((pieces.length === 1 ? first : Buffer.concat(pieces)) as BodyInit, {
      status,
      headers: fields,
    });
  if (!parts.hasLength) addField(fields, "Content-Length", String(size));
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    // Written one by one: the stream puts them together itself, and joining them before would copy them twice.
    pull(controller) {
      for (const piece of pieces) controller.write(piece);
      controller.end();
    },
  };
  // lib.dom does not know direct streams, which are Bun's own.
  const stream = new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>, {
    highWaterMark: size + 1,
  });
  return new Response(stream, { status, headers: fields });
}

/** A body of unknown length that ends at once. */
function nothing(): ReadableStream {
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull: (controller) => void controller.end(),
  };
  return new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>);
}

/** Adds a field that the list does not hold yet. */
export function addField(fields: FieldList, name: string, value: string): void {
  if (Array.isArray(fields)) fields.push([name, value]);
  else fields[name] = value;
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
    this.#controller?.enqueue(chunk);
    return (this.#controller?.desiredSize ?? 1) > 0;
  }

  end(): void {
    this.#controller?.close();
    this.#controller = null;
  }

  /** Breaks the client's response off: HTTP/1.1 is reset, HTTP/2 gets RST_STREAM. */
  fail(error: Error): void {
    this.#controller?.error(error);
    this.#controller = null;
  }
}
