// Node's HTTP/2 as a server engine: a stream of a session as a ClientStream, by the stream API only; knows no socket.
import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import type { WebSocketHandler } from "bun";
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import { HeaderBlock } from "../../http/header-block.ts";
import { bufferRelease } from "../buffer-release.ts";
import type { BodySource } from "../client-body.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import { ServerSocket } from "../websocket/server-socket.ts";
import type { FieldPairs } from "../../http/fields.ts";
import { ConnectedStream } from "./connected-stream.ts";
import type {
  BodyReader,
  BodyWriter,
  ClientStream,
  EngineFeatures,
  OutgoingHead,
} from "./client-stream.ts";
import type { RequestFields } from "./http2-fields.ts";

const FEATURES = { hasTrailers: true, readsTrailers: false, keepsLength: true, hasInterim: true };

/** Error codes of RFC 9113 section 7. */
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;

/** The connection of a stream. */
export interface StreamConnection {
  readonly info: ConnectionInfo;
  readonly websocket: WebSocketHandler<never>;
  /** Asks the client to open another connection. */
  goAway(): void;
}

/** Lives as long as the request. */
export class FullStream extends ConnectedStream implements ClientStream {
  readonly method: string;
  readonly url: string;
  readonly fields: HeaderBlock;
  readonly problem = null;
  readonly awaitsContinue = false;
  readonly hasBody: boolean;
  readonly #connection: StreamConnection;
  readonly #stream: ServerHttp2Stream;
  readonly #isWebSocket: boolean;
  #body: PulledBody | null = null;
  #trailers: FieldPairs | null = null;
  #waitsForTrailers = false;
  #isEnded = false;
  /** The client, or the connection, has gone before the response was sent. */

  constructor(
    stream: ServerHttp2Stream,
    fields: RequestFields,
    { connection, hasBody }: { readonly connection: StreamConnection; readonly hasBody: boolean },
  ) {
    super();
    this.#stream = stream;
    this.#connection = connection;
    this.method = fields.method;
    this.url = fields.url;
    this.fields = HeaderBlock.of(fields.headers);
    this.#isWebSocket = fields.isWebSocket;
    this.hasBody = hasBody && !fields.isWebSocket;
    stream.on("close", () => this.#closed());
  }

  get features(): EngineFeatures {
    return FEATURES;
  }

  get httpVersion(): string {
    return "2";
  }

  get connection(): ConnectionInfo {
    return this.#connection.info;
  }

  openBody(): BodySource {
    this.#body = new PulledBody(this.#stream);
    return this.#body;
  }

  #closed(): void {
    if (this.#stream.writableFinished && this.#stream.rstCode === NO_ERROR) return;
    this.isGone = true;
    this.abortSignal();
  }

  closeAfterResponse(): void {
    this.#connection.goAway();
  }

  setTrailers(trailers: FieldPairs): void {
    this.#trailers = trailers.length === 0 ? null : trailers;
  }

  sendInterim(status: number, fields: FieldPairs): void {
    // A client that has gone, or a response that has begun: the interim response is of no use any more.
    if (this.#isEnded || this.#stream.destroyed || this.#stream.closed) return;
    // RFC 9113 section 8.6: HTTP/2 has no 101.
    if (status < 100 || status > 199 || status === 101) return;
    this.#guard(() => {
      this.#stream.additionalHeaders({ ...fieldsOf(fields), ":status": status });
    });
  }

  respond(head: OutgoingHead, pieces: readonly Uint8Array[], isShared: boolean): void {
    if (!this.#begin()) return;
    const headers = responseFields(head, this.#trailers !== null);
    const { method } = this;
    const isEmpty = pieces.length === 0 || method === "HEAD" || isBodiless(head.status);
    if (!isEmpty && !head.hasLength) headers["content-length"] = sizeOf(pieces);
    if (isEmpty && this.#trailers === null) {
      this.#respond(headers, { endStream: true });
      this.#finishRequest();
      return;
    }
    this.#respond(headers, { waitForTrailers: this.#trailers !== null });
    if (isEmpty) return this.end();
    const last = pieces.length - 1;
    for (let index = 0; index < last; index++) this.#stream.write(pieces[index]);
    if (!isShared) for (const piece of pieces) bufferRelease.releaseLater(piece);
    // With the last piece, END_STREAM needs no frame of its own.
    this.end(pieces[last]);
  }

  start(head: OutgoingHead, reader: BodyReader, isShared: boolean): BodyWriter {
    if (this.#begin()) {
      // Trailers may follow, which are not known yet.
      const hasNone = this.method === "HEAD" || isBodiless(head.status);
      this.#respond(responseFields(head, !hasNone), { waitForTrailers: !hasNone });
    }
    return new StreamWriter(this.#stream, { reader, response: this, isShared });
  }

  /** False: the response has begun, or the client is gone. */
  #begin(): boolean {
    if (this.#isEnded) return false;
    this.#isEnded = true;
    return !this.#stream.destroyed && !this.#stream.closed;
  }

  #respond(
    headers: OutgoingHttpHeaders,
    options: { readonly endStream?: boolean; readonly waitForTrailers?: boolean },
  ): void {
    const stream = this.#stream;
    this.#waitsForTrailers = options.waitForTrailers === true;
    if (this.#waitsForTrailers) stream.on("wantTrailers", () => this.#sendTrailers());
    this.#guard(() => stream.respond(headers, options));
  }

  #sendTrailers(): void {
    const trailers = this.#trailers === null ? {} : fieldsOf(this.#trailers);
    this.#guard(() => this.#stream.sendTrailers(trailers));
    // Not before: the reset would precede the trailers, and the response would look incomplete.
    setImmediate(() => this.#stopRequest());
  }

  /** Node throws for fields that it does not send; called by an event, that would end the worker. */
  #guard(send: () => void): void {
    try {
      send();
    } catch {
      resetStream(this.#stream);
    }
  }

  /** Ends the response body. */
  end(last?: Uint8Array): void {
    this.#stream.end(last);
    this.#finishRequest();
  }

  /** Ends the request too, once the response is complete. */
  #finishRequest(): void {
    if (!this.#waitsForTrailers) this.#stream.once("finish", () => this.#stopRequest());
  }

  /** RFC 9113 section 8.1: after a complete response the rest of the request is not needed. */
  #stopRequest(): void {
    const stream = this.#stream;
    const mayGoOn = (this.hasBody || this.#isWebSocket) && !stream.readableEnded;
    if (!mayGoOn || stream.destroyed) return;
    // Both sides have ended, but the end of a body that is not read would never come.
    if (stream.closed) stream.destroy();
    else stream.close(NO_ERROR);
  }

  upgrade(fields: readonly (readonly [string, string])[], session: object): boolean {
    const stream = this.#stream;
    if (!this.#isWebSocket || !this.#begin()) return false;
    // Throws for fields that are not valid.
    const pairs = [...new Headers(fields as [string, string][])];
    stream.respond({ ...fieldsOf(pairs.filter(([, value]) => value !== "")), ":status": 200 });
    const handler = this.#connection.websocket;
    new ServerSocket(stream, handler, { session, rest: Buffer.alloc(0) });
    return true;
  }

  abort(): void {
    this.#isEnded = true;
    resetStream(this.#stream);
  }
}

/** Visibly: with an error code, and without END_STREAM before. */
export function resetStream(stream: ServerHttp2Stream, code = INTERNAL_ERROR): void {
  if (stream.destroyed) return;
  // Node ends the body of a stream that it destroys: the client would take it as complete.
  const ending = stream as unknown as { _final(done: () => void): void; rstCode: number };
  ending._final = (done) => done();
  ending.rstCode = code;
  stream.destroy();
}

/** No body, whatever the head says (RFC 9110 section 6.4.1). */
const isBodiless = (status: number): boolean => status === 204 || status === 304 || status === 205;

function sizeOf(pieces: readonly Uint8Array[]): number {
  let size = 0;
  for (const piece of pieces) size += piece.byteLength;
  return size;
}

/** A copy; repeated fields, of which only Set-Cookie is left in `Headers`, are a list. */
function responseFields(head: OutgoingHead, mayHaveTrailers: boolean): OutgoingHttpHeaders {
  const { status, headers, trailer = null } = head;
  const fields = (headers as unknown as { toJSON(): OutgoingHttpHeaders }).toJSON();
  if (mayHaveTrailers && trailer !== null) fields["trailer"] = trailer;
  for (const name of CONNECTION_FIELDS) if (name in fields) delete fields[name];
  fields[":status"] = status;
  return fields;
}

function fieldsOf(pairs: FieldPairs): OutgoingHttpHeaders {
  const fields: Record<string, string | string[]> = {};
  for (const [sent, value] of pairs) {
    const name = sent.toLowerCase();
    // Fields of a connection and pseudo fields are not valid here.
    if (name.startsWith(":") || CONNECTION_FIELDS.has(name)) continue;
    const known = fields[name];
    fields[name] =
      known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value];
  }
  return fields;
}

interface WriterOptions {
  readonly reader: BodyReader;
  readonly response: { end(): void };
  readonly isShared: boolean;
}

class StreamWriter implements BodyWriter {
  isEmpty = true;
  readonly #stream: ServerHttp2Stream;
  readonly #options: WriterOptions;
  #isOver = false;

  constructor(stream: ServerHttp2Stream, options: WriterOptions) {
    this.#stream = stream;
    this.#options = options;
    stream.on("drain", () => options.reader.wanted());
    if (stream.destroyed) queueMicrotask(() => this.#closed());
    else stream.on("close", () => this.#closed());
  }

  write(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    if (this.#isOver || this.#stream.destroyed) return true;
    // Node holds the piece until the client's window has room for it.
    if (!this.#options.isShared)
      return this.#stream.write(chunk, () => bufferRelease.releaseNow(chunk));
    bufferRelease.releaseLater(chunk);
    return this.#stream.write(chunk);
  }

  end(done: () => void): void {
    if (this.#isOver || this.#stream.destroyed) return done();
    this.#isOver = true;
    this.#stream.once("close", done);
    this.#options.response.end();
  }

  fail(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    resetStream(this.#stream);
  }

  #closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.reader.cancelled();
  }
}

type Piece = { readonly done: false; readonly value: Uint8Array } | { readonly done: true };

interface Waiting {
  readonly resolve: (piece: Piece) => void;
  readonly reject: (error: Error) => void;
}

/** An HTTP/2 stream, or a request of HTTP/1.1. */
type BodyStream = Readable & { readonly rstCode?: number | undefined; readonly aborted: boolean };

/** Node also ends the body of a stream that was reset or whose connection broke. */
const isWhole = ({ rstCode, aborted, destroyed }: BodyStream): boolean =>
  (rstCode ?? NO_ERROR) === NO_ERROR && !aborted && !destroyed;

/** Reads on demand: what is not read holds the client back by the stream's window. */
export class PulledBody implements BodySource {
  readonly #stream: BodyStream;
  #waiting: Waiting | null = null;
  #isEnded = false;
  #isBroken = false;

  constructor(stream: BodyStream) {
    this.#stream = stream;
    // An empty body that came together with the head has ended before the first listener.
    this.#isEnded = stream.readableEnded && isWhole(stream);
    stream.on("readable", () => this.#offer());
    stream.on("end", () => {
      this.#isEnded = isWhole(stream);
      this.#offer();
    });
    stream.on("close", () => this.#offer());
  }

  read(): Promise<Piece> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#offer();
    });
  }

  /** The rest will not come. */
  fail(): void {
    this.#isBroken = true;
    this.#offer();
  }

  #offer(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    const isOver = this.#isEnded || this.#isBroken;
    const piece = isOver ? null : (this.#stream.read() as Buffer | null);
    if (piece === null && !isOver && !this.#stream.destroyed) return;
    this.#waiting = null;
    if (piece !== null) waiting.resolve({ done: false, value: piece });
    else if (this.#isEnded) waiting.resolve({ done: true });
    else waiting.reject(new Error("the client has reset the stream"));
  }

  async cancel(): Promise<void> {
    this.#waiting?.resolve({ done: true });
    this.#waiting = null;
  }
}
