// One HTTP/2 request of our engine as a ClientStream, with its response as frames; knows no route and no other stream.
import type { FieldPairs } from "../../../http/fields.ts";
import type { HeaderBlock } from "../../../http/header-block.ts";
import { forbiddenInTrailers } from "../../../http/trailer-fields.ts";
import type { BodySource } from "../../client-body.ts";
import type { ProxyError } from "../../error.ts";
import type { ConnectionInfo } from "../../listener/connection-info.ts";
import { ConnectedStream } from "../connected-stream.ts";
import type {
  BodyReader,
  BodyWriter,
  ClientStream,
  EngineFeatures,
  OutgoingHead,
  SwitchedClient,
} from "../client-stream.ts";
import { switchedFields } from "../switched-fields.ts";
import { CODE } from "../../http2/frames.ts";
import { LONG_BYTES } from "../../http2/output.ts";
import type { Priority, ReadyList, ReadyStream } from "../../http2/priorities.ts";
import { Http2Body } from "./request-body.ts";
import type { Http2Head } from "./request-head.ts";
import { Http2Writer, type ResponseConnection } from "./response-body.ts";
import { SendQueue } from "../../http2/send-queue.ts";
import { StreamSocket, type TunnelStream } from "./stream-socket.ts";

/** What follows the fields of a head. */
export interface HeadEnd {
  /** An additional Content-Length; -1: none. */
  readonly length: number;
  /** No body and no trailers. */
  readonly isLast: boolean;
}

/** The connection of a stream. */
export interface StreamConnection extends ResponseConnection {
  readonly info: ConnectionInfo;
  /** Asks the client to open another connection. */
  goAway(): void;
  sendHead(stream: Http2Stream, head: OutgoingHead, end: HeadEnd): void;
  /** Sends an interim response (`status`), or trailers (null). */
  sendFields(stream: Http2Stream, status: number | null, fields: FieldPairs): void;
  /** Sends DATA of the stream's queue, at most `limit` bytes; returns how many. */
  sendData(stream: Http2Stream, limit: number): number;
  /** Sends an empty DATA frame that ends the stream. */
  sendEnd(stream: Http2Stream): void;
  /** The stream's queue has bytes. */
  ready(stream: Http2Stream): void;
  /** More of the body was read. */
  bodyRead(stream: Http2Stream): void;
  /** Nothing more is sent. `reset`: the code with which the stream must be reset; null: both sides have ended it. */
  streamEnded(stream: Http2Stream, reset: number | null): void;
}

const WEBSOCKET = "websocket";

const FEATURES: EngineFeatures = {
  hasTrailers: true,
  readsTrailers: true,
  keepsLength: true,
  hasInterim: true,
};

/** Lives as long as the request. */
export class Http2Stream
  extends ConnectedStream
  implements ClientStream, ReadyStream, TunnelStream
{
  readonly id: number;
  readonly method: string;
  readonly url: string;
  readonly rawTarget: string;
  readonly fields: HeaderBlock;
  readonly connection: ConnectionInfo;
  readonly problem: ProxyError | null;
  readonly body: Http2Body | null;
  readonly queue: SendQueue;
  awaitsContinue: boolean;
  priority: Priority;
  readyList: ReadyList | null = null;
  nextReady: ReadyStream | null = null;
  /** Bytes of the client's DATA, with padding, and those of them for which it has got new room. */
  received = 0;
  returned = 0;
  /** By how much the window has grown, and whether all was read at some time since it was given back last. */
  grown = 0;
  hasKeptUp = false;
  /** The client has ended its side. */
  isRemoteEnded: boolean;
  /** Nothing more is sent. */
  isLocalEnded = false;
  /** When the whole response was handed over, and when the client took some of it last; 0: not yet. */
  completeAt = 0;
  progressAt = 0;
  progressSize = 0;
  readonly #connection: StreamConnection;
  #hasBegun = false;
  /** Until the tunnel waits for nothing more from the client. */
  #isSwitched = false;
  /** Of an extended CONNECT: the client's side of the tunnel. */
  readonly #tunnel: StreamSocket | null;
  #writer: Http2Writer | null = null;
  #trailers: FieldPairs = [];
  /** The code after the response, where the request is an error (RFC 9113 section 8.1.1). */
  #errorCode: number | null = null;

  constructor(
    head: Http2Head,
    connection: StreamConnection,
    own: {
      readonly id: number;
      readonly isLast: boolean;
      readonly window: number;
      readonly priority: Priority;
    },
  ) {
    super();
    this.id = own.id;
    this.method = head.method;
    this.url = head.target;
    this.rawTarget = head.rawTarget;
    this.fields = head.fields;
    this.connection = connection.info;
    this.problem = head.problem;
    this.awaitsContinue = head.expectsContinue;
    this.priority = own.priority;
    this.isRemoteEnded = own.isLast;
    this.queue = new SendQueue(own.window);
    this.#connection = connection;
    this.#tunnel = head.protocol === WEBSOCKET ? new StreamSocket(this, connection) : null;
    const hasBody = !own.isLast && this.#tunnel === null;
    this.body = hasBody ? new Http2Body(head.bodyLength, () => this.bytesRead()) : null;
    if (head.problem !== null && head.problem.status === 400) this.#errorCode = CODE.protocol;
  }

  get features(): EngineFeatures {
    return FEATURES;
  }

  get httpVersion(): string {
    return "2";
  }

  get hasBody(): boolean {
    return this.body !== null;
  }

  openBody(): BodySource {
    const { body } = this;
    if (body === null) throw new Error("the request has no body");
    if (this.awaitsContinue && !this.#hasBegun && !this.isGone)
      this.#connection.sendFields(this, 100, []);
    this.awaitsContinue = false;
    return body;
  }

  closeAfterResponse(): void {
    this.#connection.goAway();
  }

  setTrailers(trailers: FieldPairs): void {
    this.#trailers = trailers;
  }

  sendInterim(status: number, fields: FieldPairs): void {
    if (this.#hasBegun || this.isGone || status < 102 || status > 199) return;
    this.#connection.sendFields(this, status, fields);
  }

  respond(head: OutgoingHead, pieces: readonly Uint8Array[], isShared: boolean): void {
    if (!this.#begin(head)) return;
    const isEmpty = this.method === "HEAD" || isBodiless(head.status);
    let size = 0;
    if (!isEmpty) for (const piece of pieces) size += piece.byteLength;
    const isLast = size === 0 && this.#trailers.length === 0;
    const length = size > 0 && !head.hasLength ? size : -1;
    this.#connection.sendHead(this, head, { length, isLast });
    if (isLast) return this.#end();
    if (size > 0) this.queue.pushWhole(pieces, isShared);
    this.endBody();
  }

  start(head: OutgoingHead, reader: BodyReader, isShared: boolean): BodyWriter {
    const begins = this.#begin(head);
    const isEmpty = !begins || this.method === "HEAD" || isBodiless(head.status);
    const length = isEmpty || !head.hasLength ? null : head.length;
    const writer = new Http2Writer(this, this.#connection, { reader, isShared, isEmpty, length });
    this.#writer = writer;
    if (begins) this.#connection.sendHead(this, head, { length: -1, isLast: false });
    else if (this.isGone) queueMicrotask(() => writer.closed());
    return writer;
  }

  /** False: the response has begun, or is not for this client: it has gone, or has to come by HTTP/1.1. */
  #begin(head: OutgoingHead): boolean {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    // A stream is no connection to authenticate, and the connection has the streams of others.
    if (head.needsHttp1 === true) this.reset(CODE.http11Required);
    return !this.isLocalEnded;
  }

  ready(): void {
    this.#connection.ready(this);
  }

  /** No more bytes of the response follow. */
  endBody(): void {
    if (this.isLocalEnded) return;
    const { queue } = this;
    queue.isEnded = true;
    this.completeAt = performance.now();
    if (queue.size > 0) {
      this.ready();
      // Until the end of the turn, long bodies of many streams would leave the processor's cache.
      if (queue.size >= LONG_BYTES) this.#connection.sendReady();
    } else if (this.#trailers.length > 0) this.#endWithTrailers();
    else {
      this.#connection.sendEnd(this);
      this.#end();
    }
  }

  #endWithTrailers(): void {
    const trailers = this.#trailers.filter(([name]) => !forbiddenInTrailers(name.toLowerCase()));
    this.#connection.sendFields(this, null, trailers);
    this.#end();
  }

  /** Both sides are over: after a complete response the rest of the request is not needed (RFC 9113 section 8.1). */
  #end(): void {
    this.isLocalEnded = true;
    // The other direction may go on without this one.
    if (this.#isSwitched && !this.isRemoteEnded) return;
    const rest = this.isRemoteEnded ? null : CODE.noError;
    this.#connection.streamEnded(this, this.#errorCode ?? rest);
    this.body?.drop();
    this.#writer?.ended();
  }

  /** `switchProtocols` is all that it needs. */
  upgrade(): boolean {
    return false;
  }

  switchProtocols(protocol: string, fields: FieldPairs, client: SwitchedClient): boolean {
    const tunnel = this.#tunnel;
    if (protocol !== WEBSOCKET || tunnel === null || this.#hasBegun || this.isGone) return false;
    const pairs = switchedFields(fields);
    this.#hasBegun = true;
    this.#isSwitched = true;
    this.#connection.sendFields(this, 200, pairs);
    tunnel.attach(client);
    if (this.isRemoteEnded) tunnel.ended();
    return true;
  }

  /** Nothing more is wanted from the client: the end of its side is not waited for. */
  finish(): void {
    this.#isSwitched = false;
    if (this.isLocalEnded && !this.isRemoteEnded) this.#connection.streamEnded(this, CODE.noError);
  }

  /** More of what has arrived was read. */
  bytesRead(): void {
    this.#connection.bodyRead(this);
  }

  /** Bytes that have arrived and hold the client's window. */
  get unread(): number {
    const { body } = this;
    if (body !== null) return body.unread;
    return this.#tunnel === null ? 0 : this.#tunnel.unread(this.received - this.returned);
  }

  abort(): void {
    this.#hasBegun = true;
    this.reset(this.#errorCode ?? CODE.internal);
  }

  /** Breaks the response off, visibly. */
  reset(code: number): void {
    // What was written before is the client's, as far as its windows allow.
    if (this.queue.size > 0) this.#connection.sendReady();
    if (this.isLocalEnded) return;
    this.isLocalEnded = true;
    this.queue.clear();
    this.#connection.streamEnded(this, code);
    this.body?.fail(new Error("the stream was reset"));
  }

  // Called by the connection.

  /** Whether the last DATA frame ends the stream. */
  get endsWithData(): boolean {
    return this.#trailers.length === 0;
  }

  /** Sends a frame of the queue; returns its bytes. */
  sendFrame(limit: number): number {
    const { queue } = this;
    const size = this.#connection.sendData(this, limit);
    if (queue.size > 0) return size;
    if (!queue.isEnded) {
      this.#writer?.drained();
      this.#tunnel?.drained();
    } else if (this.endsWithData) this.#end();
    else this.#endWithTrailers();
    return size;
  }

  /** A part of the body has arrived. */
  take(bytes: Buffer, start: number, end: number): void {
    if (start < end) this.#tunnel?.received(Buffer.from(bytes.subarray(start, end)));
    if (this.body?.take(bytes, start, end) === false) this.#errorCode = CODE.protocol;
  }

  /** The body is complete. */
  endRequest(trailers: FieldPairs | null): void {
    this.isRemoteEnded = true;
    const { body } = this;
    if (this.#isSwitched) this.#tunnelEnded();
    if (body === null) return;
    if (trailers !== null && trailers.length > 0) body.trailers = trailers;
    if (!body.end()) this.#errorCode = CODE.protocol;
  }

  #tunnelEnded(): void {
    this.#tunnel?.ended();
    if (this.isLocalEnded) this.#connection.streamEnded(this, null);
  }

  /** The client has reset the stream, or has gone. */
  gone(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.isLocalEnded = true;
    this.queue.clear();
    this.body?.fail(new Error("the client has gone"));
    this.#writer?.closed();
    this.#tunnel?.closed();
    this.abortSignal();
  }
}

/** No body, whatever the head says (RFC 9110 section 6.4.1). */
const isBodiless = (status: number): boolean => status === 204 || status === 304;
