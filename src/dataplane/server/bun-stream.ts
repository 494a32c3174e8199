// Bun.serve as a server engine: a request as a ClientStream, and Responses that Bun writes with the fewest system calls.
import type { Server } from "bun";
import { HeaderBlock } from "../../http/header-block.ts";
import { normalizeAddress } from "../../net/address.ts";
import { bufferRelease, releaseBuffers } from "../buffer-release.ts";
import type { BodySource } from "../client-body.ts";
import type {
  BodyReader,
  BodyWriter,
  ClientStream,
  EngineFeatures,
  OutgoingHead,
} from "./client-stream.ts";

const FEATURES: EngineFeatures = {
  hasTrailers: false,
  readsTrailers: false,
  keepsLength: false,
  hasInterim: false,
};

/** Serves one request; does not throw. */
export type StreamHandler = (stream: ClientStream) => void;

/** The result of a Bun.serve `fetch` handler; undefined after an upgrade. */
type BunResponse = Response | undefined | Promise<Response | undefined>;

/** The `fetch` handler of a Bun.serve. `httpVersion`: the only one of the server; null: it has several. */
export const fetchHandler =
  (serve: StreamHandler, httpVersion: string | null = null) =>
  (request: Request, server: Server<unknown>): BunResponse => {
    const stream = new BunStream(request, server);
    stream.httpVersion = httpVersion;
    serve(stream);
    return stream.response;
  };

/** Lives as long as the request. */
class BunStream implements ClientStream {
  readonly method: string;
  readonly url: string;
  readonly fields: HeaderBlock;
  readonly connection = null;
  httpVersion: string | null = null;
  readonly problem = null;
  readonly awaitsContinue = false;
  peerPort = 0;
  readonly #request: Request;
  readonly #server: Server<unknown>;
  /** Null until Bun waits for a promise. */
  #resolve: ((response: Response | undefined) => void) | null = null;
  #response: Response | undefined;
  #isEnded = false;
  #closesConnection = false;

  constructor(request: Request, server: Server<unknown>) {
    this.#request = request;
    this.#server = server;
    this.method = request.method;
    this.url = request.url;
    // All fields in one call: three times cheaper than iterating.
    this.fields = HeaderBlock.of(
      (request.headers as unknown as { toJSON(): Record<string, string> }).toJSON(),
    );
  }

  /** The result of the `fetch` handler: a response that is ready at once saves a promise. */
  get response(): BunResponse {
    if (this.#isEnded) return this.#response;
    const promise = new Promise<Response | undefined>(takeResolve);
    this.#resolve = handed.resolve;
    return promise;
  }

  get features(): EngineFeatures {
    return FEATURES;
  }

  get hasBody(): boolean {
    return this.#request.body !== null;
  }

  openBody(): BodySource {
    const { body } = this.#request;
    if (body === null) throw new Error("the request has no body");
    return body.getReader();
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  peerAddress(): string {
    const peer = this.#server.requestIP(this.#request);
    const address = peer?.address ?? "0.0.0.0";
    this.peerPort = peer?.port ?? 0;
    // IPv4 has one form only.
    return address.includes(":") ? (normalizeAddress(address) ?? address) : address;
  }

  suspendIdleTimeout(): void {
    this.#server.timeout(this.#request, 0);
  }

  restoreIdleTimeout(seconds: number): void {
    this.#server.timeout(this.#request, seconds);
  }

  closeAfterResponse(): void {
    this.#closesConnection = true;
  }

  setTrailers(): void {}

  sendInterim(): void {}

  respond(head: OutgoingHead, pieces: readonly Uint8Array[], isShared: boolean): void {
    const [first] = pieces;
    if (first === undefined) {
      this.#end(new Response(this.#isUnknownLength(head) ? emptyStream() : null, head));
      return;
    }
    const size = sizeOf(pieces);
    const isLate = this.#resolve !== null;
    // Bun adds a Content-Type to a body without one, or with an empty one, unless it is a stream.
    if (head.hasContentType && (size < DIRECT_FROM_BYTES || !isLate)) {
      const body = pieces.length === 1 ? first : Buffer.concat(pieces);
      const response = new Response(body as BodyInit, head);
      if (!isShared) releaseBuffers(pieces);
      this.#end(response, isLate);
      return;
    }
    const headers = head.hasLength ? head.headers : withLength(head.headers, size);
    const body = directStream(pieces, size, isShared);
    this.#end(new Response(body, { status: head.status, headers }));
  }

  /** Without a body Bun would send `Content-Length: 0` for HEAD, unlike for the same GET. */
  #isUnknownLength({ status, hasLength }: OutgoingHead): boolean {
    return this.method === "HEAD" && !hasLength && status !== 204 && status !== 304;
  }

  start(head: OutgoingHead, reader: BodyReader, isShared: boolean): BodyWriter {
    const body = new StreamedBody(reader, isShared);
    this.#end(new Response(body.stream, head));
    return body;
  }

  upgrade(fields: readonly (readonly [string, string])[], session: object): boolean {
    const headers = fields as [string, string][];
    // Bun opens the client's side before this returns.
    if (!this.#server.upgrade(this.#request, { headers, data: session })) return false;
    this.#end(undefined);
    return true;
  }

  abort(): void {
    this.#end(abortedResponse());
  }

  /** `isBatched`: hands it to Bun together with the others of this turn of the event loop. */
  #end(response: Response | undefined, isBatched = false): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#closesConnection) response?.headers.set("connection", "close");
    this.#response = response;
    if (!isBatched) this.send();
    else if (batch.push(this) === 1) setImmediate(sendBatch);
  }

  /** Hands the response to Bun if it waits for it. */
  send(): void {
    this.#resolve?.(this.#response);
  }
}

/** Streams with a short response of this turn of the event loop. */
const batch: BunStream[] = [];

/**
 * Bun sends the responses of one HTTP/2 connection in one system call then, and the processor stays in the same code: 19 % less
 * processor time over HTTP/2, 3 to 5 % over HTTP/1.1 (64 B, docs/decisions/0016-what-bun-costs.md). Longer ones would wait while
 * others push their bodies out of the cache: 10 % more at 1 MB.
 */
function sendBatch(): void {
  for (let index = 0; index < batch.length; index++) batch[index]?.send();
  batch.length = 0;
}

type Resolve = (response: Response | undefined) => void;

/** One executor for all promises, instead of a closure per request. */
const handed: { resolve: Resolve } = { resolve: () => {} };
const takeResolve = (resolve: Resolve): void => {
  handed.resolve = resolve;
};

/**
 * Bun.serve has no call to close a connection, but resets one whose response body fails before its first byte. The reason is
 * null because Bun prints any other one.
 */
function abortedResponse(): Response {
  return new Response(new ReadableStream({ start: (controller) => controller.error(null) }));
}

/**
 * An asynchronous Response with a larger plain body is written field by field, a system call and a packet for each: 30 and
 * more, 90 to 190 microseconds. Given as a direct stream it is one call and keeps its Content-Length (`make bench`, 20 KB).
 */
const DIRECT_FROM_BYTES = 15_000;

/** A loop, because `reduce` would call a closure for each piece. */
function sizeOf(pieces: readonly Uint8Array[]): number {
  let size = 0;
  for (const piece of pieces) size += piece.byteLength;
  return size;
}

/** All pieces in one write. */
function directStream(
  pieces: readonly Uint8Array[],
  size: number,
  isShared: boolean,
): ReadableStream {
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    // One by one: the stream joins them itself, and joining them here would copy them twice.
    pull(controller) {
      for (const piece of pieces) controller.write(piece);
      if (!isShared) releaseBuffers(pieces);
      controller.end();
    },
  };
  // lib.dom does not know direct streams, which are Bun's own.
  return new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>, {
    highWaterMark: size + 1,
  });
}

/** A body of unknown length that ends at once. */
function emptyStream(): ReadableStream {
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull: (controller) => void controller.end(),
  };
  return new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>);
}

function withLength(headers: Headers, size: number): Headers {
  const copy = new Headers(headers);
  copy.set("Content-Length", String(size));
  return copy;
}

/** Bytes buffered in a streamed body before the target is paused. */
const STREAM_BUFFER_BYTES = 262_144;

/** The controller of a direct stream. */
interface DirectController {
  /** Copies the bytes; a promise when the caller should wait for the client. */
  write(bytes: Uint8Array): number | Promise<number>;
  end(): void;
}

/**
 * A direct stream copies pieces at once, so that their memory is released without the garbage collector: a
 * gigabyte in pieces would grow the worker by 50 MB.
 */
class StreamedBody implements BodyWriter {
  readonly stream: ReadableStream<Uint8Array>;
  isEmpty = true;
  readonly #reader: BodyReader;
  readonly #isShared: boolean;
  readonly #over = Promise.withResolvers<void>();
  #controller: DirectController | null = null;
  /** Pieces written before Bun has called `pull`. */
  #buffered: Uint8Array[] = [];
  #bufferedBytes = 0;
  #isOver = false;
  #isFull = false;

  constructor(reader: BodyReader, isShared: boolean) {
    this.#reader = reader;
    this.#isShared = isShared;
    const direct: Bun.DirectUnderlyingSource<Uint8Array> = {
      type: "direct",
      pull: (controller) => this.#begin(controller as unknown as DirectController),
      cancel: () => this.#cancelled(),
    };
    this.stream = new ReadableStream<Uint8Array>(direct as unknown as UnderlyingSource<Uint8Array>);
  }

  write(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    if (this.#isOver) return true;
    if (this.#controller !== null) return this.#writeTo(this.#controller, chunk);
    this.#buffered.push(chunk);
    this.#bufferedBytes += chunk.byteLength;
    return this.#bufferedBytes < STREAM_BUFFER_BYTES;
  }

  end(done: () => void): void {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#controller?.end();
      this.#over.resolve();
    }
    done();
  }

  fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.reject(error);
  }

  /** Resolves at the end of the body, which ends the stream. */
  #begin(controller: DirectController): Promise<void> {
    this.#controller = controller;
    const isPaused = this.#bufferedBytes >= STREAM_BUFFER_BYTES;
    for (const chunk of this.#buffered.splice(0)) this.#writeTo(controller, chunk);
    if (this.#isOver) controller.end();
    else if (isPaused && !this.#isFull) this.#reader.wanted();
    return this.#over.promise;
  }

  #writeTo(controller: DirectController, chunk: Uint8Array): boolean {
    const written = controller.write(chunk);
    if (this.#isShared) bufferRelease.releaseLater(chunk);
    else bufferRelease.releaseNow(chunk);
    if (typeof written === "number") return !this.#isFull;
    this.#isFull = true;
    written.then(
      () => {
        this.#isFull = false;
        if (!this.#isOver) this.#reader.wanted();
      },
      () => {},
    );
    return false;
  }

  #cancelled(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.resolve();
    this.#reader.cancelled();
  }
}
