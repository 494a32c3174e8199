// One HTTP/1.1 request of our engine as a ClientStream, with its response as bytes; knows no route and no parser.
import { createHash } from "node:crypto";
import type { HeaderBlock } from "../../../http/header-block.ts";
import { releaseBuffers } from "../../buffer-release.ts";
import type { BodySource } from "../../client-body.ts";
import type { ProxyError } from "../../error.ts";
import type { ConnectionInfo } from "../../listener/connection-info.ts";
import type { FieldPairs } from "../../../http/fields.ts";
import { ConnectedStream } from "../connected-stream.ts";
import type {
  BodyReader,
  BodyWriter,
  ClientStream,
  EngineFeatures,
  OutgoingHead,
  SwitchedClient,
} from "../client-stream.ts";
import type { BoundConnections } from "../../upstream/bound-connections.ts";
import type { PeerSocket } from "../peer-socket.ts";
import { switchedFields } from "../switched-fields.ts";
import type { Http1Body } from "./request-body.ts";
import type { RequestHead } from "./request-parser.ts";
import { Http1Writer, linesOf, oneChunk, responseHead, trailerLine } from "./response-writer.ts";

/** The connection of a request. */
export interface StreamConnection {
  readonly info: ConnectionInfo;
  readonly socket: PeerSocket;
  readonly boundConnections: BoundConnections;
  readonly isGoingAway: boolean;
  /** The line that announces HTTP/3; empty: none does. */
  readonly altSvc: string;
  /** The response was handed over. */
  responded(keepsConnection: boolean): void;
  /** The socket is the client's from now on. */
  switched(client: SwitchedClient): void;
}

const WEBSOCKET = "websocket";
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const FEATURES: Record<"1.0" | "1.1" | "trailers", EngineFeatures> = {
  "1.0": { hasTrailers: false, readsTrailers: true, keepsLength: true, hasInterim: false },
  "1.1": { hasTrailers: false, readsTrailers: true, keepsLength: true, hasInterim: true },
  trailers: { hasTrailers: true, readsTrailers: true, keepsLength: true, hasInterim: true },
};

/** Lives as long as the request. */
export class Http1Stream extends ConnectedStream implements ClientStream {
  readonly head: RequestHead;
  readonly method: string;
  readonly url: string;
  readonly rawTarget: string;
  readonly fields: HeaderBlock;
  readonly httpVersion: string;
  readonly features: EngineFeatures;
  readonly hasBody: boolean;
  readonly connection: ConnectionInfo;
  readonly boundConnections: BoundConnections;
  readonly problem: ProxyError | null;
  readonly body: Http1Body | null;
  /** The response is complete, as far as the gateway is concerned. */
  isResponded = false;
  readonly #connection: StreamConnection;
  #keepsConnection: boolean;
  #hasBegun = false;
  awaitsContinue: boolean;
  #writer: Http1Writer | null = null;
  #trailers: FieldPairs = [];

  /** `problem`: what the gateway responds with to a head that is no request; null: it is one. */
  constructor(
    head: RequestHead,
    connection: StreamConnection,
    { body, problem }: { readonly body: Http1Body | null; readonly problem: ProxyError | null },
  ) {
    super();
    this.head = head;
    this.method = head.method;
    this.url = head.target;
    this.rawTarget = head.rawTarget;
    this.fields = head.fields;
    this.httpVersion = head.httpVersion;
    this.features = FEATURES[head.takesTrailers ? "trailers" : head.httpVersion];
    this.hasBody = body !== null;
    this.connection = connection.info;
    this.boundConnections = connection.boundConnections;
    this.problem = problem;
    this.body = body;
    this.#connection = connection;
    this.#keepsConnection = head.keepsAlive && !connection.isGoingAway;
    this.awaitsContinue = head.expectsContinue;
  }

  openBody(): BodySource {
    const { body } = this;
    if (body === null) throw new Error("the request has no body");
    if (this.awaitsContinue && !this.#hasBegun)
      this.#connection.socket.writeText("HTTP/1.1 100 Continue\r\n\r\n");
    this.awaitsContinue = false;
    return body;
  }

  closeAfterResponse(): void {
    this.#keepsConnection = false;
  }

  setTrailers(trailers: FieldPairs): void {
    this.#trailers = trailers;
  }

  sendInterim(status: number, fields: FieldPairs): void {
    if (!this.features.hasInterim || this.#hasBegun || status < 102 || status > 199) return;
    this.#connection.socket.writeText(`HTTP/1.1 ${status} \r\n${linesOf(fields)}\r\n`);
  }

  respond(head: OutgoingHead, pieces: readonly Uint8Array[], isShared: boolean): void {
    const { status } = head;
    if (!this.#begin(head)) return;
    // 204 and 304 have no body, whatever the head says (RFC 9110 section 6.4.1).
    const isEmpty = this.method === "HEAD" || status === 204 || status === 304;
    const keepsOn = this.#keepsConnection && this.httpVersion === "1.1";
    let lines = keepsOn ? "" : this.#connectionLine;
    let body = isEmpty ? NO_PIECES : pieces;
    if (!isEmpty && !head.hasLength) {
      let size = 0;
      for (const piece of pieces) size += piece.byteLength;
      const hasTrailers = this.#trailers.length > 0 && this.head.takesTrailers;
      const framing = hasTrailers
        ? `Transfer-Encoding: chunked\r\n${trailerLine(head)}`
        : `Content-Length: ${size}\r\n`;
      lines = `${framing}${lines}`;
      if (hasTrailers) body = oneChunk(pieces, size, this.#trailers);
    }
    const { socket } = this.#connection;
    const altSvc = this.connection.tlsVersion === null ? "" : this.#connection.altSvc;
    const isSent = socket.writeText(responseHead(head, lines, altSvc), body);
    if (!isShared && isSent) releaseBuffers(pieces);
    this.#end();
  }

  start(head: OutgoingHead, reader: BodyReader, isShared: boolean): BodyWriter {
    const { status } = head;
    const begins = this.#begin(head);
    const isEmpty = !begins || this.method === "HEAD" || status === 204 || status === 304;
    const isChunked = !isEmpty && !head.hasLength && this.httpVersion === "1.1";
    // RFC 9112 section 6.3: without a length and without chunks, the end of the connection ends the body.
    if (!isEmpty && !head.hasLength && !isChunked) this.#keepsConnection = false;
    const { socket } = this.#connection;
    const writer = new Http1Writer(socket, reader, {
      isChunked,
      isEmpty,
      isShared,
      length: isEmpty || !head.hasLength ? null : head.length,
      takesTrailers: this.head.takesTrailers,
      trailers: () => this.#trailers,
      ended: () => this.#end(),
    });
    this.#writer = writer;
    if (begins) {
      const announced = this.head.takesTrailers ? trailerLine(head) : "";
      const coding = isChunked ? `Transfer-Encoding: chunked\r\n${announced}` : "";
      const altSvc = this.connection.tlsVersion === null ? "" : this.#connection.altSvc;
      socket.writeText(responseHead(head, `${coding}${this.#connectionLine}`, altSvc));
    }
    if (!begins || this.isGone) queueMicrotask(() => writer.closed());
    return writer;
  }

  /** False: the response has begun. */
  #begin(head: OutgoingHead): boolean {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    // The client may send the body or not: the next byte is either's.
    if (this.awaitsContinue || this.head.upgrade !== null) this.#keepsConnection = false;
    if (head.closes) this.#keepsConnection = false;
    if (this.body?.isBroken === true || this.#connection.isGoingAway) this.#keepsConnection = false;
    return true;
  }

  get #connectionLine(): string {
    if (!this.#keepsConnection) return "Connection: close\r\n";
    return this.httpVersion === "1.1" ? "" : "Connection: keep-alive\r\n";
  }

  #end(): void {
    if (this.isResponded) return;
    this.isResponded = true;
    this.#connection.responded(this.#keepsConnection);
  }

  /** `switchProtocols` is all that it needs. */
  upgrade(): boolean {
    return false;
  }

  switchProtocols(protocol: string, fields: FieldPairs, client: SwitchedClient): boolean {
    const connection = this.#connection;
    const { socket } = connection;
    // The protocol begins behind the whole request (RFC 9110 section 7.8).
    const isWhole = this.body === null || this.body.isComplete;
    if (this.head.upgrade === null || this.#hasBegun || socket.isClosed || !isWhole) return false;
    const lines = linesOf(switchedFields(fields));
    this.#hasBegun = true;
    this.isResponded = true;
    socket.writeText(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\n${this.#acceptLine(protocol)}${lines}\r\n`,
    );
    connection.switched(client);
    return true;
  }

  /** RFC 6455 section 4.2.2. */
  #acceptLine(protocol: string): string {
    if (protocol !== WEBSOCKET) return "";
    const key = this.fields.get("sec-websocket-key");
    return `Sec-WebSocket-Accept: ${createHash("sha1").update(`${key}${ACCEPT_SUFFIX}`).digest("base64")}\r\n`;
  }

  abort(): void {
    this.#hasBegun = true;
    this.#connection.socket.destroy();
  }

  // Called by the connection.

  drained(): void {
    this.#writer?.drained();
  }

  /**
   * The client has sent FIN: it may still read, or it has gone. Both look alike until something is written to it, so write what
   * changes nothing: an interim response that every client ignores (RFC 9110 section 15.2), or a zero before the size of the
   * next chunk. One that has gone answers with a reset.
   */
  probe(): void {
    const { socket } = this.#connection;
    if (!this.#hasBegun) {
      if (this.features.hasInterim) socket.writeText("HTTP/1.1 100 Continue\r\n\r\n");
    } else if (this.#writer?.canProbe === true) socket.writeText("0");
  }

  connectionClosed(): void {
    this.#writer?.closed();
    if (this.isResponded) return;
    this.isResponded = true;
    this.isGone = true;
    this.body?.fail(new Error("the client has gone"));
    this.abortSignal();
  }
}

const NO_PIECES: readonly Uint8Array[] = [];
