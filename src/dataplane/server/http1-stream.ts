// One HTTP/1.1 request of the full engine as a ClientStream, with its response as bytes; knows no route and no parser.
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketHandler } from "bun";
import { bufferRelease } from "../buffer-release.ts";
import { HeaderBlock } from "../../http/header-block.ts";
import type { BodySource } from "../client-body.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import { forbiddenInTrailers } from "../../http/trailer-fields.ts";
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
import { normalTarget } from "../../http/request-target.ts";
import { linesOf, trailerLine } from "./http1/response-writer.ts";
import { switchedFields } from "./switched-fields.ts";
import { PulledBody } from "./full-http2.ts";

/** The connection of a request. */
export interface RequestConnection {
  readonly info: ConnectionInfo;
  readonly websocket: WebSocketHandler<never>;
  responded(keepsConnection: boolean): void;
  /** The socket is a WebSocket's from now on; returns what has arrived of it. */
  upgraded(): Buffer;
}

interface StreamOptions {
  readonly connection: RequestConnection;
  /** Whether what follows the head is a WebSocket's, once it is accepted. */
  readonly mayUpgrade: boolean;
  readonly keepsConnection: boolean;
  readonly isTls: boolean;
}

const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Lives as long as the request. */
export class Http1Stream extends ConnectedStream implements ClientStream {
  readonly method: string;
  readonly url: string;
  readonly fields: HeaderBlock;
  readonly problem = null;
  readonly awaitsContinue = false;
  readonly hasBody: boolean;
  readonly httpVersion: string;
  readonly features: EngineFeatures;
  readonly request: IncomingMessage;
  /** The response is complete, as far as the gateway is concerned. */
  isResponded = false;
  readonly #socket: Duplex;
  readonly #connection: RequestConnection;
  readonly #mayUpgrade: boolean;
  #keepsConnection: boolean;
  #hasBegun = false;
  #awaitsContinue: boolean;
  #body: PulledBody | null = null;
  #writer: Http1Writer | null = null;
  #trailers: FieldPairs = [];

  constructor(request: IncomingMessage, socket: Duplex, options: StreamOptions) {
    super();
    const { connection, mayUpgrade, keepsConnection, isTls } = options;
    this.request = request;
    this.#socket = socket;
    this.#connection = connection;
    this.#mayUpgrade = mayUpgrade;
    this.#keepsConnection = keepsConnection;
    this.method = request.method ?? "";
    this.httpVersion = request.httpVersion;
    const headers = joinedFields(request.rawHeaders);
    this.fields = HeaderBlock.of(headers);
    this.url = urlOf(request.url ?? "", headers["host"] ?? "", isTls);
    const length = headers["content-length"];
    this.hasBody =
      headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
    const isHttp11 = this.httpVersion === "1.1";
    this.#awaitsContinue =
      isHttp11 && this.hasBody && headers["expect"]?.toLowerCase() === "100-continue";
    const hasTrailers = isHttp11 && /(?:^|,)\s*trailers\s*(?:,|;|$)/i.test(headers["te"] ?? "");
    this.features = {
      hasTrailers,
      readsTrailers: false,
      keepsLength: true,
      hasInterim: isHttp11,
    };
  }

  get connection(): ConnectionInfo {
    return this.#connection.info;
  }

  openBody(): BodySource {
    if (this.#awaitsContinue && !this.#hasBegun)
      this.#socket.write("HTTP/1.1 100 Continue\r\n\r\n");
    this.#awaitsContinue = false;
    this.#body = new PulledBody(this.request);
    if (this.isGone) this.#body.fail();
    return this.#body;
  }

  closeAfterResponse(): void {
    this.#keepsConnection = false;
  }

  setTrailers(trailers: FieldPairs): void {
    this.#trailers = trailers;
  }

  sendInterim(status: number, fields: FieldPairs): void {
    if (!this.features.hasInterim || this.#hasBegun || status < 102 || status > 199) return;
    this.#socket.write(`HTTP/1.1 ${status} \r\n${linesOf(fields)}\r\n`, "latin1");
  }

  respond(head: OutgoingHead, pieces: readonly Uint8Array[], isShared: boolean): void {
    if (!this.#begin(head)) return;
    const isEmpty = this.method === "HEAD" || isBodiless(head.status);
    let size = 0;
    for (const piece of pieces) size += piece.byteLength;
    const length = head.hasLength || isEmpty ? "" : `content-length: ${size}\r\n`;
    const socket = this.#socket;
    socket.cork();
    socket.write(this.#headText(head, length), "latin1");
    if (!isEmpty) for (const piece of pieces) socket.write(piece);
    socket.uncork();
    if (!isShared) for (const piece of pieces) bufferRelease.releaseLater(piece);
    this.#end();
  }

  start(head: OutgoingHead, reader: BodyReader): BodyWriter {
    const begins = this.#begin(head);
    const isEmpty = !begins || this.method === "HEAD" || isBodiless(head.status);
    const isChunked = !isEmpty && !head.hasLength && this.httpVersion === "1.1";
    // RFC 9112 section 6.3: without a length and without chunks, the end of the connection ends the body.
    if (!isEmpty && !head.hasLength && !isChunked) this.#keepsConnection = false;
    const length = isEmpty || !head.hasLength ? null : Number(head.headers.get("content-length"));
    const writer = new Http1Writer(this.#socket, reader, {
      isChunked,
      isEmpty,
      length,
      ended: (done) => this.#ended(isChunked, done),
    });
    this.#writer = writer;
    if (begins) {
      const announced = this.features.hasTrailers ? trailerLine(head) : "";
      const coding = isChunked ? `transfer-encoding: chunked\r\n${announced}` : "";
      this.#socket.write(this.#headText(head, coding), "latin1");
    }
    if (!begins || this.isGone) queueMicrotask(() => writer.closed());
    return writer;
  }

  /** False: the response has begun. */
  #begin({ headers }: OutgoingHead): boolean {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    // The client may send the body or not: the next byte is either's.
    if (this.#awaitsContinue || this.#mayUpgrade) this.#keepsConnection = false;
    // Of a request that the gateway rejects.
    if (headers.get("connection") === "close") this.#keepsConnection = false;
    return true;
  }

  #headText({ status, headers }: OutgoingHead, framing: string): string {
    const reason = process.getBuiltinModule("node:http").STATUS_CODES[status] ?? "";
    let fields = "";
    for (const [name, value] of headers) {
      if (CONNECTION_FIELDS.has(name) || (status === 204 && name === "content-length")) continue;
      fields += `${name}: ${value}\r\n`;
    }
    if (!headers.has("date")) fields += `date: ${new Date().toUTCString()}\r\n`;
    const connection = this.#keepsConnection
      ? this.httpVersion === "1.1"
        ? ""
        : "connection: keep-alive\r\n"
      : "connection: close\r\n";
    return `HTTP/1.1 ${status} ${reason}\r\n${fields}${framing}${connection}\r\n`;
  }

  /** The body of a streamed response is complete. */
  #ended(isChunked: boolean, done: () => void): void {
    if (this.isResponded) return done();
    const socket = this.#socket;
    const trailers = this.features.hasTrailers
      ? this.#trailers.filter(([name]) => !forbiddenInTrailers(name.toLowerCase()))
      : [];
    if (isChunked) socket.write(`0\r\n${linesOf(trailers)}\r\n`, "latin1", () => done());
    else if (socket.writableLength === 0) done();
    else socket.write("", () => done());
    this.#end();
  }

  #end(): void {
    if (this.isResponded) return;
    this.isResponded = true;
    this.#connection.responded(this.#keepsConnection);
  }

  upgrade(fields: readonly (readonly [string, string])[], session: object): boolean {
    if (!this.#mayUpgrade || this.#hasBegun || this.#socket.destroyed) return false;
    const lines = linesOf(switchedFields(fields));
    const accept = createHash("sha1").update(
      `${this.fields.get("sec-websocket-key")}${ACCEPT_SUFFIX}`,
    );
    this.#hasBegun = true;
    this.isResponded = true;
    this.#socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept.digest("base64")}\r\n${lines}\r\n`,
      "latin1",
    );
    const rest = this.#connection.upgraded();
    new ServerSocket(this.#socket, this.#connection.websocket, { session, rest });
    return true;
  }

  abort(): void {
    this.#hasBegun = true;
    this.#socket.destroy();
  }

  // Called by the connection.

  drained(): void {
    this.#writer?.drained();
  }

  /** The rest of the request is malformed; `response` is sent if none has begun. */
  refuse(response: string): void {
    if (this.#hasBegun) this.#socket.destroy();
    else this.#socket.write(response);
    this.#hasBegun = true;
    this.connectionClosed();
  }

  connectionClosed(): void {
    if (this.isResponded) return;
    this.isResponded = true;
    this.isGone = true;
    // `request.destroy` would destroy the socket, with a response that is on its way.
    this.#body?.fail();
    this.#connection.responded(false);
    this.abortSignal();
    this.#writer?.closed();
  }
}

/** No body, whatever the head says (RFC 9110 section 6.4.1). */
const isBodiless = (status: number): boolean => status === 204 || status === 304;

/** As Bun joins them: a repeated Host or Content-Length becomes a list, which the request path refuses. */
function joinedFields(raw: readonly string[]): Record<string, string> {
  // Without a prototype: clients name fields as they like.
  const headers = Object.create(null) as Record<string, string>;
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] ?? "").toLowerCase();
    const value = raw[index + 1] ?? "";
    const known = headers[name];
    headers[name] =
      known === undefined ? value : `${known}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return headers;
}

/** An absolute-form target loses its authority, as with Bun.serve: Host decides. */
function urlOf(target: string, host: string, isTls: boolean): string {
  const origin = `${isTls ? "https" : "http"}://${host.replaceAll("/", "")}`;
  const absolute = /^https?:\/\/[^/?#]*(.*)$/i.exec(target);
  const path = absolute?.[1] ?? target;
  const isRoot = absolute !== null && !path.startsWith("/");
  return `${origin}${normalTarget(isRoot ? `/${path}` : path)}`;
}

interface WriterOptions {
  readonly isChunked: boolean;
  /** Nothing is sent: HEAD, 204, 304. */
  readonly isEmpty: boolean;
  /** As declared; null: unknown. */
  readonly length: number | null;
  ended(done: () => void): void;
}

class Http1Writer implements BodyWriter {
  isEmpty = true;
  readonly #socket: Duplex;
  readonly #reader: BodyReader;
  readonly #options: WriterOptions;
  #left: number;
  #isOver = false;
  #isFull = false;

  constructor(socket: Duplex, reader: BodyReader, options: WriterOptions) {
    this.#socket = socket;
    this.#reader = reader;
    this.#options = options;
    this.#left = options.length ?? Number.POSITIVE_INFINITY;
  }

  write(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    const { isEmpty, isChunked } = this.#options;
    if (this.#isOver || isEmpty || chunk.byteLength === 0) return true;
    this.#left -= chunk.byteLength;
    // More than declared would be taken for the next response.
    if (this.#left < 0) {
      this.#socket.destroy();
      return true;
    }
    bufferRelease.releaseLater(chunk);
    const socket = this.#socket;
    let hasRoom: boolean;
    if (isChunked) {
      socket.cork();
      socket.write(`${chunk.byteLength.toString(16)}\r\n`, "latin1");
      socket.write(chunk);
      hasRoom = socket.write("\r\n", "latin1");
      socket.uncork();
      hasRoom ||= !socket.writableNeedDrain;
    } else hasRoom = socket.write(chunk);
    this.#isFull = !hasRoom;
    return hasRoom;
  }

  end(done: () => void): void {
    if (this.#isOver) return done();
    this.#isOver = true;
    const { length, isEmpty } = this.#options;
    if (length !== null && !isEmpty && this.#left > 0) {
      // Shorter than declared: the client must not wait for the rest, nor take it for complete.
      this.#socket.destroy();
      return done();
    }
    this.#options.ended(done);
  }

  fail(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
  }

  drained(): void {
    if (!this.#isFull || this.#isOver) return;
    this.#isFull = false;
    this.#reader.wanted();
  }

  /** The client has gone. */
  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reader.cancelled();
  }
}
