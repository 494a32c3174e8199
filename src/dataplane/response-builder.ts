// Makes the Response that Bun.serve writes with the fewest system calls; knows no upstream.
import type { FieldList } from "./upstream/response-parser.ts";

export interface ResponseParts {
  readonly status: number;
  readonly fields: FieldList;
  readonly hasContentType: boolean;
  /** Whether `fields` holds a Content-Length. */
  readonly hasLength: boolean;
}

/**
 * An asynchronous Response with a larger plain body is written field by field, a system call and a packet for each: 30 and
 * more, 90 to 190 microseconds. Given as a direct stream it is one call and keeps its Content-Length (`make bench`, 20 KB).
 */
const DIRECT_FROM_BYTES = 15_000;

/** A response whose whole body is there. Throws TypeError when a field is not valid. */
export function completeResponse(parts: ResponseParts, body: Uint8Array<ArrayBuffer>): Response {
  const { status, fields } = parts;
  if (body.byteLength === 0) return new Response(null, { status, headers: fields });
  // Bun gives a body without Content-Type one of its own, unless it is a stream.
  if (body.byteLength < DIRECT_FROM_BYTES && parts.hasContentType)
    return new Response(body, { status, headers: fields });
  if (!parts.hasLength) addField(fields, "Content-Length", String(body.byteLength));
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull(controller) {
      controller.write(body);
      controller.end();
    },
  };
  // lib.dom does not know direct streams, which are Bun's own.
  const stream = new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>, {
    highWaterMark: body.byteLength + 1,
  });
  return new Response(stream, { status, headers: fields });
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
