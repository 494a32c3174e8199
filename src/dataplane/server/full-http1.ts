// HTTP/1.1 connections of the full engine: Node's strict parser, the order of requests and time limits; knows no route and no TLS.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketHandler } from "bun";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import { headTimeout } from "../listener/head-watch.ts";
import type { StreamHandler } from "./bun-stream.ts";
import { Http1Stream } from "./http1-stream.ts";

/** Largest request head, as with Bun.serve; the listener's own limit is lower and is answered with an error page. */
const MAX_HEAD_BYTES = 16_384;
/** Fields of a head; `max_header_fields` is lower. */
const MAX_FIELDS = 1000;
/** Request body bytes that Node may hold before the gateway stops reading from the client. */
const MAX_UNREAD_BYTES = 65_536;
/** Bytes of a body that are read and dropped after the response, so that the connection can be used again. */
const MAX_DROPPED_BYTES = 65_536;
/** Time for the client to close after the gateway has sent everything. */
const LINGER_MS = 2000;

/** What a connection needs of its engine. Times in milliseconds. */
export interface Http1Owner {
  readonly info: ConnectionInfo;
  readonly serve: StreamHandler;
  readonly websocket: WebSocketHandler<never>;
  /** For each request head; 0: no limit. */
  readonly headTimeout: number;
  readonly idleTimeout: number;
  refused(reason: string): void;
  /** A request or WebSocket begins (1) or has ended (-1). */
  counted(change: 1 | -1): void;
}

/** Parses the requests of all connections of an engine. */
export class Http1Parser {
  readonly #server: Server;
  readonly #connections = new WeakMap<Duplex, Http1Connection>();

  constructor() {
    const { createServer } = process.getBuiltinModule("node:http");
    const find = (socket: Duplex) => this.#connections.get(socket);
    this.#server = createServer({
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HEAD_BYTES,
      // Decides before the body is parsed, so that every other Upgrade is ignored (RFC 9110 section 7.8).
      shouldUpgradeCallback: (request: IncomingMessage) =>
        find(request.socket)?.mayUpgrade(request) === true,
    } as object);
    this.#server.maxHeadersCount = MAX_FIELDS;
    const begin = (request: IncomingMessage, response: ServerResponse) => {
      // Node's responses have no trailers here, and wait for one another: the gateway writes its own.
      response.detachSocket(request.socket);
      find(request.socket)?.received(request, null);
    };
    for (const event of ["request", "checkContinue", "checkExpectation"])
      this.#server.on(event, begin);
    this.#server.on("upgrade", (request, socket, rest: Buffer) =>
      find(socket)?.received(request, rest),
    );
    this.#server.on("connect", (_request, socket) => find(socket)?.refuse("400 Bad Request"));
    this.#server.on("clientError", (error: Error & { code?: string }, socket) =>
      find(socket)?.refuse(
        error.code === "HPE_HEADER_OVERFLOW"
          ? "431 Request Header Fields Too Large"
          : "400 Bad Request",
      ),
    );
  }

  /** Serves the requests of a connection. */
  open(socket: Duplex, owner: Http1Owner): Http1Connection {
    const connection = new Http1Connection(socket, owner);
    this.#connections.set(socket, connection);
    const before = new Set(socket.listeners("end"));
    this.#server.emit("connection", socket);
    // Node would end the connection of a client that has sent FIN behind its request.
    for (const listener of socket.listeners("end"))
      if (!before.has(listener)) socket.removeListener("end", listener as () => void);
    socket.allowHalfOpen = true;
    connection.begin();
    return connection;
  }
}

/** One request at a time: what a client pipelines waits, and the gateway reads no more of it. */
export class Http1Connection {
  readonly #socket: Duplex;
  readonly #owner: Http1Owner;
  readonly #waiting: IncomingMessage[] = [];
  #current: Http1Stream | null = null;
  #isGoingAway = false;
  /** Nothing more is read as a request: refused, upgraded or ended by the gateway. */
  #isOver = false;
  #isUpgraded = false;
  /** Since when a head is incomplete; 0: none is. */
  #headSince = performance.now();
  #hasRequests = false;
  /** The chunk that is being parsed has completed a head. */
  #hasHead = false;
  #idleSince = performance.now();
  #unsent = 0;
  #dropped = 0;
  #takeHeld: () => Buffer = () => Buffer.alloc(0);
  #lingerUntil = Number.POSITIVE_INFINITY;
  readonly #onData = (chunk: Buffer): void => this.#passed(chunk);

  constructor(socket: Duplex, owner: Http1Owner) {
    this.#socket = socket;
    this.#owner = owner;
  }

  get info(): ConnectionInfo {
    return this.#owner.info;
  }

  get websocket(): WebSocketHandler<never> {
    return this.#owner.websocket;
  }

  /** Behind the parser's own listeners. */
  begin(): void {
    const socket = this.#socket;
    socket.on("data", this.#onData);
    socket.on("error", () => {});
    socket.on("drain", () => this.#current?.drained());
    socket.on("end", () => this.#ended());
    socket.on("close", () => {
      if (this.#isUpgraded) this.#owner.counted(-1);
      this.#isOver = true;
      this.#current?.connectionClosed();
    });
  }

  /** The client sends nothing more. */
  #ended(): void {
    const current = this.#current;
    if (this.#isUpgraded) return;
    // As with Bun.serve, and as other gateways do: such a client has gone.
    if (current === null || current.isResponded) this.#end();
    else this.#socket.destroy();
  }

  /** Whether the bytes behind a request's head are a WebSocket's, if it is accepted. */
  mayUpgrade(request: IncomingMessage): boolean {
    const { headers } = request;
    return (
      this.#current === null &&
      this.#waiting.length === 0 &&
      request.method === "GET" &&
      request.httpVersion === "1.1" &&
      headers.upgrade?.toLowerCase() === "websocket" &&
      headers["transfer-encoding"] === undefined &&
      (headers["content-length"] ?? "0") === "0"
    );
  }

  /** The head of a request is complete. `rest`: what follows an upgrade. */
  received(request: IncomingMessage, rest: Buffer | null): void {
    this.#hasRequests = true;
    this.#hasHead = true;
    this.#headSince = 0;
    if (this.#isOver) return;
    request.on("error", () => {});
    if (rest !== null) {
      this.#socket.removeListener("data", this.#onData);
      this.#hold(rest);
      this.#serve(request, true);
    } else if (this.#current === null) this.#serve(request, false);
    else {
      this.#waiting.push(request);
      this.#socket.pause();
    }
  }

  /** Reads on while the target decides on an upgrade, to notice a client that leaves. */
  #hold(rest: Buffer): void {
    let held = rest;
    const hold = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      if (held.length >= MAX_UNREAD_BYTES) this.#socket.pause();
    };
    this.#socket.on("data", hold);
    this.#socket.resume();
    this.#takeHeld = () => {
      this.#socket.removeListener("data", hold);
      return held;
    };
  }

  #serve(request: IncomingMessage, mayUpgrade: boolean): void {
    const { httpVersionMajor: major, httpVersion, headers } = request;
    if (major !== 1) return this.refuse("505 HTTP Version Not Supported");
    // RFC 9112 section 6.1: its framing is faulty.
    if (httpVersion === "1.0" && headers["transfer-encoding"] !== undefined)
      return this.refuse("400 Bad Request");
    this.#owner.counted(1);
    const stream = new Http1Stream(request, this.#socket, {
      connection: this,
      mayUpgrade,
      keepsConnection: !mayUpgrade && !this.#isGoingAway && isKeptAlive(request),
      isTls: this.info.tlsVersion !== null,
    });
    this.#current = stream;
    this.#owner.serve(stream);
  }

  /** The parser has read a chunk. */
  #passed(chunk: Buffer): void {
    const current = this.#current;
    const hadHead = this.#hasHead;
    this.#hasHead = false;
    this.#idleSince = performance.now();
    if (current === null) {
      if (!this.#isOver && !hadHead && this.#headSince === 0) this.#headSince = this.#idleSince;
    } else if (current.isResponded) this.#drop(current, chunk.length);
    else if (current.request.readableLength >= MAX_UNREAD_BYTES) this.#socket.pause();
  }

  /** The rest of a body after the response. */
  #drop(current: Http1Stream, bytes: number): void {
    this.#dropped += bytes;
    discard(current.request);
    if (current.request.complete) this.#next();
    else if (this.#dropped > MAX_DROPPED_BYTES) this.#end();
  }

  /** The response of the current request was handed over; `keepsConnection` as it said. */
  responded(keepsConnection: boolean): void {
    const current = this.#current;
    if (current === null) return;
    this.#owner.counted(-1);
    this.#idleSince = performance.now();
    if (!keepsConnection) return this.#end();
    this.#dropped = 0;
    if (current.request.complete) return this.#next();
    discard(current.request);
    this.#socket.resume();
  }

  #next(): void {
    this.#current = null;
    if (this.#isGoingAway && this.#waiting.length === 0) return this.#end();
    const request = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#socket.resume();
    if (request !== undefined) this.#serve(request, false);
  }

  /** The socket belongs to a WebSocket now; returns what the client has sent of it. */
  upgraded(): Buffer {
    this.#isOver = true;
    this.#isUpgraded = true;
    this.#headSince = 0;
    return this.#takeHeld();
  }

  /** Responds to bytes that are no request, and closes the connection. */
  refuse(status: string): void {
    if (this.#isOver) return;
    const current = this.#current;
    const response = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
    if (current === null) this.#socket.write(response);
    // Before the response to an earlier request it would be taken for that response.
    else if (current.request.complete) return current.closeAfterResponse();
    else if (!current.isResponded) return current.refuse(response);
    this.#end();
  }

  /** Sends what is left and reads on for a while, so that a reset does not destroy the response on its way. */
  #end(): void {
    this.#isOver = true;
    this.#headSince = 0;
    this.#current = null;
    this.#waiting.length = 0;
    this.#socket.end();
    this.#socket.resume();
    this.#lingerUntil = performance.now() + LINGER_MS;
  }

  /** The connection ends with the current request. */
  goAway(): void {
    this.#isGoingAway = true;
    if (this.#current !== null) this.#current.closeAfterResponse();
    else if (!this.#isOver && this.#headSince === 0) this.#end();
  }

  /** Called about once a second. */
  tick(now: number): void {
    const socket = this.#socket;
    if (this.#isUpgraded || (this.#current !== null && !this.#current.isResponded)) return;
    // A client that reads slowly is not idle.
    if (socket.writableLength !== this.#unsent) this.#idleSince = now;
    this.#unsent = socket.writableLength;
    if (now >= this.#lingerUntil && now - this.#idleSince >= LINGER_MS) socket.destroy();
    else if (this.#headSince > 0 && this.#isLate(now)) this.#refuseHead();
    else if (now - this.#idleSince >= this.#owner.idleTimeout) socket.destroy();
  }

  #isLate(now: number): boolean {
    const { headTimeout: timeout, idleTimeout } = this.#owner;
    return now - this.#headSince >= (timeout === 0 ? idleTimeout : timeout);
  }

  #refuseHead(): void {
    this.#owner.refused("the head of a request did not arrive in time");
    // To a client that has sent nothing there is nothing to respond to.
    if (!this.#hasRequests && this.#idleSince === this.#headSince) {
      this.#socket.destroy();
      return;
    }
    if (this.#socket.writableLength === 0) this.#socket.write(headTimeout());
    this.#end();
  }
}

/** RFC 9112 section 9.3. */
function isKeptAlive({ httpVersion, headers }: IncomingMessage): boolean {
  const options = (headers.connection ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  if (options.includes("close")) return false;
  // The end of a request with another coding is unknown (RFC 9112 section 6.3).
  if ((headers["transfer-encoding"] ?? "chunked") !== "chunked") return false;
  return httpVersion === "1.1" || options.includes("keep-alive");
}

/** Drops what has arrived of a body. */
function discard(request: IncomingMessage): void {
  while (request.read() !== null);
}
