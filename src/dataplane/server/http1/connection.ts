// One HTTP/1.1 connection of our engine: one request at a time, what waits behind it, time limits and the end; knows no route.
import { EMPTY_BLOCK } from "../../../http/header-block.ts";
import { partOf } from "../../buffer-release.ts";
import { failures, type ProxyError } from "../../error.ts";
import type { ConnectionInfo } from "../../listener/connection-info.ts";
import type { ClientSocket } from "../../listener/client-socket.ts";
import { BoundConnections } from "../../upstream/bound-connections.ts";
import type { SwitchedClient } from "../client-stream.ts";
import { Http2Connection } from "../http2/connection.ts";
import { beginsWithPreface } from "../../http2/frames.ts";
import { PeerSocket, type SocketUser } from "../peer-socket.ts";
import { altSvcLine, type ConnectionOwner, type ServedConnection } from "../served-connection.ts";
import { ByteQueue } from "./byte-queue.ts";
import { Http1Body, MAX_DROPPED_BYTES } from "./request-body.ts";
import { CHUNKED, HeadReader, leadingBreaks, type RequestHead } from "./request-parser.ts";
import { Http1Stream, type StreamConnection } from "./stream.ts";

/** Bytes that wait behind a request before the gateway stops reading from the client. */
const MAX_WAITING_BYTES = 65_536;
/** Of a body: less, because a whole read comes on top of it. */
const MAX_BODY_BYTES = 32_768;
/** The least that `max_header_bytes` can be: shorter heads are within every limit. */
const LEAST_LIMIT = 1024;
const CR = 13;
/** After the client's FIN, to let a response come first. */
const PROBE_AFTER_MS = 500;

/** Stands for a head that could not be read. */
const UNREAD: RequestHead = {
  method: "GET",
  target: "/",
  rawTarget: "/",
  httpVersion: "1.1",
  fields: EMPTY_BLOCK,
  bodyLength: 0,
  keepsAlive: false,
  expectsContinue: false,
  takesTrailers: false,
  upgrade: null,
};

export class Http1Connection implements SocketUser, StreamConnection, ServedConnection {
  readonly info: ConnectionInfo;
  readonly isHttp2 = false;
  readonly socket: PeerSocket;
  readonly boundConnections = new BoundConnections();
  isGoingAway = false;
  readonly #owner: ConnectionOwner;
  readonly #waiting = new ByteQueue();
  #stream: Http1Stream | null = null;
  readonly #reader = new HeadReader();
  #isWithinHead = false;
  #isRunning = false;
  /** Nothing more is read as a request. */
  #isOver = false;
  /** Nothing was read yet. */
  #mayBecomeHttp2 = true;
  /** The socket is another's: HTTP/2 follows. */
  #isLeft = false;
  /** After 101. */
  #switched: SwitchedClient | null = null;
  #hasRequests = false;
  /** Since when a head is incomplete; 0: none is. */
  #headSince: number;
  #idleSince: number;
  /** When the client has sent FIN within a request; 0: it has not. */
  #endedAt = 0;
  #dropped = 0;
  #unsent = 0;

  constructor(accepted: ClientSocket, owner: ConnectionOwner) {
    this.#owner = owner;
    this.info = owner.info;
    this.socket = new PeerSocket(accepted, this);
    this.#headSince = performance.now();
    this.#idleSince = this.#headSince;
  }

  /** Whether a request or upgraded connection is served. */
  get isBusy(): boolean {
    if (this.#switched !== null) return !this.socket.isFinished;
    return this.#stream?.isResponded === false;
  }

  get pending(): number {
    return this.isBusy ? 1 : 0;
  }

  /** Whether the kernel has all that the client is to get. */
  get isServed(): boolean {
    return !this.isBusy && this.socket.heldBytes === 0;
  }

  get altSvc(): string {
    return altSvcLine(this.#owner.listener());
  }

  /** `buffered`: what the client has sent so far. */
  begin(buffered: Buffer): void {
    if (buffered.length > 0) this.socket.clientSent(buffered);
  }

  // Events of the socket.

  received(chunk: Buffer): void {
    if (this.#switched !== null) return this.#switched.received(chunk);
    if (this.#isOver) return;
    const stream = this.#stream;
    const isAlone = stream === null && this.#waiting.length === 0 && !this.#isRunning;
    // Line breaks before a request line are not part of it; an empty read begins nothing.
    if (isAlone && this.socket.heldBytes === 0 && (chunk[0] ?? CR) !== CR)
      return this.#takeHead(chunk);
    const body = stream === null ? null : stream.body;
    if (body !== null && !body.isComplete) {
      const used = body.take(chunk);
      if (stream?.isResponded === true) this.#drop(used);
      if (used < chunk.length && !this.#isOver) this.#waiting.push(partOf(chunk, used));
    } else this.#waiting.push(chunk);
    this.#advance();
  }

  /** What arrives where nothing waits, and begins with a head or goes on with one: mostly a request, no more and no less. */
  #takeHead(chunk: Buffer): void {
    const head = this.#read(chunk);
    if (head === null) {
      this.#waiting.push(chunk);
      return this.#readOn();
    }
    const isAlone = this.#reader.size === chunk.length;
    if (!("method" in head) || head.bodyLength !== 0 || !isAlone) {
      this.#waiting.push(chunk);
      this.#serveHead(head);
      return this.#advance();
    }
    this.#isRunning = true;
    this.#begin(head);
    this.#isRunning = false;
    // Responses from memory are complete by now.
    if (this.#stream === null) this.#advance();
  }

  drained(): void {
    if (this.#switched !== null) return this.#switched.drained();
    this.#stream?.drained();
    this.#advance();
  }

  ended(): void {
    if (this.#switched !== null) return this.#switched.ended();
    const stream = this.#stream;
    if (stream === null) return this.#advance();
    if (stream.isResponded) return this.#finish();
    // Half a body is no request.
    if (stream.body?.isComplete === false) return this.socket.destroy();
    this.#endedAt = performance.now();
    // Whole requests may wait behind this one.
    if (this.#waiting.length === 0) stream.closeAfterResponse();
  }

  closed(isReset: boolean): void {
    this.#isOver = true;
    this.#waiting.clear();
    this.boundConnections.close();
    this.#switched?.closed(isReset);
    this.#stream?.connectionClosed();
    this.#stream = null;
    this.#owner.closed();
  }

  // Requests.

  /** Begins requests, as far as the bytes allow. Responses call it again within: a loop, to bound the stack. */
  #advance(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      // A client that does not read its responses gets no others.
      while (this.#isFree && this.#waiting.length > 0 && this.socket.heldBytes === 0)
        if (!this.#readHead()) break;
    } finally {
      this.#isRunning = false;
    }
    // Behind FIN, what is left is half a head.
    if (this.socket.hasEnded && this.#isFree && this.socket.heldBytes === 0) this.#finish();
    this.#readOn();
  }

  get #isFree(): boolean {
    return this.#stream === null && !this.#isOver;
  }

  /** False: the head is not complete. */
  #readHead(): boolean {
    const waiting = this.#waiting;
    // Only whole ones: they are not part of a head (RFC 9112 section 2.2).
    if (!this.#isWithinHead) {
      const breaks = leadingBreaks(waiting.bytes);
      if (breaks > 0) this.#mayBecomeHttp2 = false;
      waiting.drop(breaks);
      // Half of one may become whole.
      if (waiting.length === 1 && waiting.bytes[0] === 13) return false;
    }
    if (waiting.length === 0) return false;
    const head = this.#read(waiting.bytes);
    if (head !== null) this.#serveHead(head);
    return head !== null;
  }

  /** Null: the head is not complete. */
  #read(bytes: Buffer): RequestHead | ProxyError | null {
    const { length } = bytes;
    const most = length <= LEAST_LIMIT ? length : this.#owner.listener().max_header_bytes;
    const head = this.#reader.read(bytes, most);
    this.#isWithinHead = head === null;
    return head;
  }

  /** Of the first bytes that wait. */
  #serveHead(head: RequestHead | ProxyError): void {
    if ("method" in head) {
      this.#waiting.drop(this.#reader.size);
      this.#begin(head);
    } else if (head !== failures.httpVersion || !this.#becomesHttp2()) this.#refuse(head);
  }

  /** RFC 9113 section 3.3: a client with prior knowledge begins with a preface that looks like a head of HTTP/1.1. */
  #becomesHttp2(): boolean {
    const owner = this.#owner;
    const { bytes } = this.#waiting;
    const isAllowed = owner.info.tlsVersion === null && owner.listener().http2;
    if (!isAllowed || !this.#mayBecomeHttp2 || !beginsWithPreface(bytes)) return false;
    this.#isOver = true;
    this.#isLeft = true;
    const connection = new Http2Connection(this.socket, owner);
    owner.replaced(connection);
    connection.begin(bytes);
    return true;
  }

  #begin(head: RequestHead, problem: ProxyError | null = null): void {
    this.#hasRequests = true;
    this.#mayBecomeHttp2 = false;
    this.#headSince = 0;
    const { bodyLength: length } = head;
    const body = length === 0 ? null : this.#bodyOf(length);
    if (length === CHUNKED || length > MAX_WAITING_BYTES) this.socket.boundReads();
    const stream = new Http1Stream(head, this, { body, problem });
    this.#stream = stream;
    if (body !== null && this.#waiting.length > 0)
      this.#waiting.drop(body.take(this.#waiting.bytes));
    if (this.socket.hasEnded) this.ended();
    if (this.#isOver) return;
    try {
      this.#owner.serve(stream);
    } catch {
      // Thrown by an event of the socket, it would go unnoticed.
      stream.abort();
    }
  }

  /** A method of its own: inlined, the scope of its closure would be allocated for each request. */
  #bodyOf(length: number): Http1Body {
    return new Http1Body(length, () => this.#readOn());
  }

  /** Responds to bytes that are no request, and closes the connection. */
  #refuse(problem: ProxyError): void {
    this.#waiting.clear();
    this.#begin(UNREAD, problem);
  }

  /** The rest of a body after the response. */
  #drop(bytes: number): void {
    this.#dropped += bytes;
    const body = this.#stream?.body;
    if (body?.isComplete === true) this.#next();
    else if (body?.isBroken === true || this.#dropped > MAX_DROPPED_BYTES) this.#finish();
  }

  responded(keepsConnection: boolean): void {
    this.#idleSince = performance.now();
    const body = this.#stream?.body ?? null;
    if (!keepsConnection || body?.isBroken === true) return this.#finish();
    // Nothing waits: there is nothing to do.
    if (body === null && this.#waiting.length === 0 && !this.isGoingAway && !this.socket.hasEnded) {
      this.#stream = null;
      return;
    }
    if (body === null || body.isComplete) return this.#next();
    this.#dropped = 0;
    body.drop();
  }

  #next(): void {
    this.#stream = null;
    if (this.isGoingAway) this.#finish();
    else this.#advance();
  }

  switched(client: SwitchedClient): void {
    this.#isOver = true;
    this.#stream = null;
    this.#switched = client;
    const early = Buffer.from(this.#waiting.bytes);
    this.#waiting.clear();
    client.switched(this.socket, early);
  }

  /** Reads on, unless enough waits; and watches over an incomplete head. */
  #readOn(): void {
    if (this.#switched !== null || this.#isLeft) return;
    if (!this.#isFree) this.#headSince = 0;
    else if (this.#waiting.length === 0 && this.#hasRequests) this.#headSince = 0;
    else if (this.#headSince === 0) this.#headSince = performance.now();
    this.#waiting.settle();
    const unread = this.#stream?.body?.unread ?? 0;
    const held = this.#isFree ? 0 : this.#waiting.length;
    if (held >= MAX_WAITING_BYTES || unread >= MAX_BODY_BYTES) this.socket.pause();
    else this.socket.resume();
  }

  /** Sends what is left, and FIN. */
  #finish(): void {
    this.#isOver = true;
    this.#headSince = 0;
    this.#waiting.clear();
    this.#idleSince = performance.now();
    this.socket.finish(this.#idleSince);
  }

  // Called by the listener.

  /** The connection ends with the current request. */
  goAway(): void {
    this.isGoingAway = true;
    if (this.#stream !== null) this.#stream.closeAfterResponse();
    else if (!this.#isOver && this.#headSince === 0) this.#finish();
  }

  /** Called about once a second. */
  tick(now: number): void {
    this.socket.tick(now);
    if (this.socket.isClosed || this.#switched !== null) return;
    const unsent = this.socket.heldBytes;
    // A client that reads slowly is not idle.
    if (unsent !== this.#unsent) this.#idleSince = now;
    this.#unsent = unsent;
    if (this.isBusy) return this.#probe(now);
    const { headTimeout, idleTimeout, writeTimeout } = this.#owner.bounds();
    const idle = now - this.#idleSince;
    if (unsent > 0) {
      if (writeTimeout > 0 && idle >= writeTimeout) this.socket.destroy();
    } else if (this.#isOver) return;
    else if (this.#headSince > 0) {
      if (now - this.#headSince >= (headTimeout || idleTimeout)) this.#headIsLate();
    } else if (idle >= idleTimeout) this.#finish();
  }

  #probe(now: number): void {
    if (this.#endedAt === 0 || now - this.#endedAt < PROBE_AFTER_MS) return;
    this.#endedAt = Number.POSITIVE_INFINITY;
    this.#stream?.probe();
  }

  #headIsLate(): void {
    this.#owner.refused("the head of a request did not arrive in time");
    // To a client that has sent nothing there is nothing to respond to.
    if (!this.#hasRequests && this.#waiting.length === 0) this.socket.destroy();
    else this.#refuse(failures.headTimeout);
  }

  /** Closes at once. */
  close(): void {
    this.socket.destroy();
  }
}
