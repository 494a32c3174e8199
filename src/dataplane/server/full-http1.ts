// HTTP/1.1 connections of the full engine: Node's strict parser, the order of requests and time limits; knows no route and no TLS.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketHandler } from "bun";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import { headTimeout } from "../listener/head-watch.ts";
import type { StreamHandler } from "./bun-stream.ts";
import { MAX_HEAD_BYTES, RequestGate } from "./http1-gate.ts";
import { Http1Stream } from "./http1-stream.ts";

/** Fields of a head; `max_header_fields` is lower. */
const MAX_FIELDS = 1000;
/** Request bytes that wait, in Node's body or for the request before them, before the gateway stops reading from the client. */
const MAX_UNREAD_BYTES = 65_536;
/** Bytes of a body that are read and dropped after the response, so that the connection can be used again. */
const MAX_DROPPED_BYTES = 65_536;
/** Time for the client to close after the gateway has sent everything. */
const LINGER_MS = 2000;
/** The same for a client that goes on sending. */
const MAX_LINGER_MS = 30_000;

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
      shouldUpgradeCallback: mayUpgrade,
    } as object);
    this.#server.maxHeadersCount = MAX_FIELDS;
    const begin = (request: IncomingMessage, response: ServerResponse) => {
      // Node's responses have no trailers here, and wait for one another: the gateway writes its own.
      response.detachSocket(request.socket);
      find(request.socket)?.parsed(request, false);
    };
    for (const event of ["request", "checkContinue", "checkExpectation"])
      this.#server.on(event, begin);
    this.#server.on("upgrade", (request, socket) => find(socket)?.parsed(request, true));
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
    const [data, end] = [socket.listeners("data"), socket.listeners("end")];
    this.#server.emit("connection", socket);
    // The gateway gives the parser its bytes. At a FIN, Node would end the connection.
    const parsers = takeListeners(socket, "data", data);
    takeListeners(socket, "end", end);
    socket.allowHalfOpen = true;
    const connection = new Http1Connection(socket, owner, (bytes) => {
      for (const parse of parsers) parse.call(socket, bytes);
    });
    this.#connections.set(socket, connection);
    connection.begin();
    return connection;
  }
}

type Listener = (...values: unknown[]) => void;

/** Removes the listeners that were not there before, and returns them. */
function takeListeners(socket: Duplex, event: string, before: readonly unknown[]): Listener[] {
  const added = (socket.listeners(event) as Listener[]).filter((one) => !before.includes(one));
  for (const listener of added) socket.removeListener(event, listener);
  return added;
}

/** Whether the bytes behind a request's head are a WebSocket's, if it is accepted. */
function mayUpgrade({ method, httpVersion, headers }: IncomingMessage): boolean {
  return (
    method === "GET" &&
    httpVersion === "1.1" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["transfer-encoding"] === undefined &&
    (headers["content-length"] ?? "0") === "0"
  );
}

/** One request at a time: what a client pipelines waits, and the gateway reads no more of it. */
export class Http1Connection {
  readonly #socket: Duplex;
  readonly #owner: Http1Owner;
  readonly #parse: (bytes: Buffer) => void;
  readonly #gate: RequestGate;
  #current: Http1Stream | null = null;
  /** The request whose head the parser has just completed, and whether its client may upgrade. */
  #begun: IncomingMessage | null = null;
  #mayUpgrade = false;
  /** What a client sends behind an upgrade, before the target decides; null: there is no upgrade. */
  #early: Buffer | null = null;
  #isGoingAway = false;
  /** Nothing more is read as a request: refused, upgraded or ended by the gateway. */
  #isOver = false;
  #isUpgraded = false;
  /** Since when a head is incomplete; 0: none is. */
  #headSince = performance.now();
  #hasRequests = false;
  #idleSince = performance.now();
  #unsent = 0;
  #dropped = 0;
  #lingerSince = Number.POSITIVE_INFINITY;
  readonly #onData = (chunk: Buffer): void => this.#received(chunk);

  /** `parse` gives Node's parser bytes. */
  constructor(socket: Duplex, owner: Http1Owner, parse: (bytes: Buffer) => void) {
    this.#socket = socket;
    this.#owner = owner;
    this.#parse = parse;
    this.#gate = new RequestGate(this);
  }

  get info(): ConnectionInfo {
    return this.#owner.info;
  }

  get websocket(): WebSocketHandler<never> {
    return this.#owner.websocket;
  }

  begin(): void {
    const socket = this.#socket;
    socket.on("data", this.#onData);
    socket.on("error", () => {});
    socket.on("drain", () => this.#drained());
    socket.on("end", () => this.#ended());
    socket.on("close", () => {
      if (this.#isUpgraded) this.#owner.counted(-1);
      this.#isOver = true;
      this.#gate.close();
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

  #drained(): void {
    if (this.#current === null) this.#advance();
    else this.#current.drained();
  }

  #received(chunk: Buffer): void {
    this.#idleSince = performance.now();
    if (this.#early !== null) this.#early = Buffer.concat([this.#early, chunk]);
    else if (!this.#isOver) this.#gate.push(chunk);
    this.#readOn();
  }

  /** Lets the next request begin. */
  #advance(): void {
    this.#gate.advance();
    if (!this.#isUpgraded) this.#readOn();
  }

  /** Stops or goes on reading, and watches over an incomplete head. */
  #readOn(): void {
    const { isWithinHead, heldBytes } = this.#gate;
    if (!this.isReady) this.#headSince = 0;
    else if (!isWithinHead && this.#hasRequests) this.#headSince = 0;
    else if (this.#headSince === 0) this.#headSince = this.#idleSince;
    const unread = this.#current?.isResponded === false ? this.#current.request.readableLength : 0;
    const waiting = Math.max(heldBytes, unread, this.#early?.length ?? 0);
    if (waiting >= MAX_UNREAD_BYTES) this.#socket.pause();
    else if (this.#current === null || this.#current.isResponded) this.#socket.resume();
  }

  // Called by the gate and the parser.

  /** A client that does not read its responses gets no others. */
  get isReady(): boolean {
    return this.#current === null && !this.#isOver && !this.#socket.writableNeedDrain;
  }

  parse(bytes: Buffer): IncomingMessage | null {
    this.#begun = null;
    const current = this.#current;
    try {
      this.#parse(bytes);
    } catch {
      // A bug of the parser must not end the worker.
      this.refuse("400 Bad Request");
    }
    if (current?.isResponded === true) this.#drop(current, bytes.length);
    return this.#begun;
  }

  /** The head of a request is complete. */
  parsed(request: IncomingMessage, isUpgrade: boolean): void {
    request.on("error", () => {});
    this.#begun = request;
    this.#mayUpgrade = isUpgrade;
  }

  serve(request: IncomingMessage): void {
    const isUpgrade = this.#mayUpgrade;
    this.#hasRequests = true;
    this.#headSince = 0;
    this.#owner.counted(1);
    const stream = new Http1Stream(request, this.#socket, {
      connection: this,
      mayUpgrade: isUpgrade,
      keepsConnection: !isUpgrade && !this.#isGoingAway && isKeptAlive(request),
      isTls: this.info.tlsVersion !== null,
    });
    this.#current = stream;
    if (isUpgrade) {
      // Reads on while the target decides, to notice a client that leaves.
      this.#early = this.#gate.close();
      this.#socket.resume();
    }
    try {
      this.#owner.serve(stream);
    } catch {
      // Thrown by an event of the socket, it would end the worker.
      stream.abort();
    }
  }

  /** Responds to bytes that are no request, and closes the connection. */
  refuse(status: string): void {
    if (this.#isOver) return;
    const current = this.#current;
    const response = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
    if (current === null) this.#socket.write(response);
    else if (!current.isResponded) return current.refuse(response);
    this.#end();
  }

  /** The rest of a body after the response. */
  #drop(current: Http1Stream, bytes: number): void {
    if (this.#isOver) return;
    this.#dropped += bytes;
    discard(current.request);
    if (current.request.complete) this.#next();
    else if (this.#dropped > MAX_DROPPED_BYTES) this.#end();
  }

  // Called by the stream.

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
    if (this.#isGoingAway) return this.#end();
    this.#advance();
  }

  /** The socket belongs to a WebSocket now; returns what the client has sent of it. */
  upgraded(): Buffer {
    this.#isOver = true;
    this.#isUpgraded = true;
    this.#headSince = 0;
    this.#socket.removeListener("data", this.#onData);
    const early = this.#early ?? Buffer.alloc(0);
    this.#early = null;
    return early;
  }

  /** Sends what is left and reads on for a while, so that a reset does not destroy the response on its way. */
  #end(): void {
    this.#isOver = true;
    this.#gate.close();
    this.#early = null;
    this.#headSince = 0;
    this.#current = null;
    this.#socket.end();
    this.#socket.resume();
    this.#lingerSince = performance.now();
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
    if (this.#hasLingered(now)) socket.destroy();
    else if (this.#headSince > 0 && this.#isLate(now)) this.#refuseHead();
    else if (now - this.#idleSince >= this.#owner.idleTimeout) socket.destroy();
  }

  #hasLingered(now: number): boolean {
    const ms = now - this.#lingerSince;
    if (ms < LINGER_MS) return false;
    const isSent = this.#socket.writableLength === 0;
    return now - this.#idleSince >= LINGER_MS || (isSent && ms >= MAX_LINGER_MS);
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
  return httpVersion === "1.1" || options.includes("keep-alive");
}

/** Drops what has arrived of a body. */
function discard(request: IncomingMessage): void {
  while (request.read() !== null);
}
