// One client connection of the full engine: its TLS handshake, protocol, time limits and end; knows no route and no listener.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import type { WebSocketHandler } from "bun";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { ClientSocket, SocketOwner } from "../listener/loopback-tunnel.ts";
import { SocketStream } from "../listener/socket-stream.ts";
import type { TlsTermination } from "../listener/tls-terminators.ts";
import type { StreamHandler } from "./bun-stream.ts";
import { beginsWithPreface, FrameWatch } from "./frame-watch.ts";
import type { Http1Connection, Http1Parser } from "./full-http1.ts";
import { FullStream, resetStream, type StreamConnection } from "./full-http2.ts";
import { readRequestFields } from "./http2-fields.ts";
import { UnreadResponses } from "./unread-responses.ts";

/** Of a session: the stream, its fields as an object, flags of the frame, its fields as sent. */
type StreamEvent = [
  stream: ServerHttp2Stream,
  headers: object,
  flags: number,
  raw: readonly string[],
];

/** Limits of a connection, read when it begins. Times in milliseconds. */
export interface ConnectionBounds {
  readonly offersHttp2: boolean;
  /** Concurrent streams. */
  readonly maxStreams: number;
  /** For the TLS handshake. */
  readonly handshakeTimeout: number;
  /** For the preface and each header block; 0: no limit. */
  readonly headTimeout: number;
  /** Without an open stream. */
  readonly idleTimeout: number;
  /** In which a client reads nothing of complete responses; infinity: no limit. */
  readonly writeTimeout: number;
  /** After it the client is asked to open another connection; 0: no limit. */
  readonly maxAge: number;
}

export interface FullEngineOptions {
  readonly serve: StreamHandler;
  readonly websocket: WebSocketHandler<never>;
  bounds(): ConnectionBounds;
  refused(reason: string, address: string): void;
  /** A client's handshake succeeded or failed. */
  onHandshake(isDone: boolean): void;
}

/** A connection that the acceptor has routed here. */
export interface RoutedConnection {
  readonly socket: ClientSocket;
  /** What the client has sent so far. */
  readonly buffered: Buffer;
  readonly info: ConnectionInfo;
  /** Null: cleartext. */
  readonly tls: TlsTermination | null;
  /** The connection is closed. */
  ended(): void;
}

/**
 * RFC 9113 section 6.5.2. Node renews it once before a stream counts as unread: a connection can make the gateway hold
 * twice this for each of its streams.
 */
const STREAM_WINDOW_BYTES = 65_535;
/** Of all streams of a connection. More streams have smaller windows, down to the smallest that carries a whole frame. */
const CONNECTION_WINDOW_BYTES = 16_777_216;
const LEAST_WINDOW_BYTES = 16_384;
/** Bytes of a header list as HPACK counts them. The listener's own limit is lower and is answered with 431. */
const MAX_HEADER_LIST_BYTES = 65_536;
/** Fields of a header list; `max_header_fields` is lower and is answered with 431. */
const MAX_HEADER_PAIRS = 1000;
/** Refused streams of a connection, all in all. */
const MAX_REFUSED_STREAMS = 10_000;

const END_STREAM = 1;
/** Error codes of RFC 9113 section 7. */
const NO_ERROR = 0;
const PROTOCOL_ERROR = 1;
const ENHANCE_YOUR_CALM = 11;
/** Time for a client to read the last bytes of a connection. */
const LINGER_MS = 2000;
/** RFC 9113 section 6.8: no stream is refused yet. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** ±10 %, so that connections that began together do not end together. */
const spread = (ms: number): number => ms * (0.9 + 0.2 * Math.random());

/**
 * Collects the frames of one turn of the event loop, each of which would become a TLS record of its own: 105 µs of
 * processor time for a unary gRPC call instead of 145.
 */
function collectWrites(socket: Duplex): void {
  const [write, end] = [socket.write.bind(socket), socket.end.bind(socket)];
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  const flush = (): void => {
    const [first, ...more] = pieces;
    pieces = [];
    bytes = 0;
    if (first !== undefined && !socket.destroyed)
      write(more.length === 0 ? first : Buffer.concat([first, ...more]));
  };
  socket.write = (frame: Uint8Array): boolean => {
    if (pieces.push(frame) === 1) process.nextTick(flush);
    bytes += frame.byteLength;
    if (bytes >= MAX_COLLECTED_BYTES) flush();
    return !socket.writableNeedDrain;
  };
  socket.end = (...values: unknown[]) => {
    flush();
    return (end as (...all: unknown[]) => Duplex)(...values);
  };
}

/** With the handle of a TLS socket, Bun's HTTP/2 reads the bytes below the stream, where no frame can be watched. */
function withoutHandle<T>(socket: Duplex, use: () => T): T {
  const holder = socket as unknown as { _handle: unknown };
  const handle = holder._handle;
  if (handle === undefined) return use();
  collectWrites(socket);
  holder._handle = null;
  try {
    return use();
  } finally {
    holder._handle = handle;
  }
}

/** The window of each of so many streams, in bytes. */
const windowOf = (streams: number): number =>
  Math.min(
    STREAM_WINDOW_BYTES,
    Math.max(LEAST_WINDOW_BYTES, Math.floor(CONNECTION_WINDOW_BYTES / streams)),
  );

/** Frames that wait for the end of a turn; more are written at once, for back-pressure. */
const MAX_COLLECTED_BYTES = 65_536;

interface ConnectionOptions extends FullEngineOptions {
  http1(): Http1Parser;
}

export class FullConnection implements StreamConnection {
  info: ConnectionInfo;
  openStreams = 0;
  readonly #streams = new Set<ServerHttp2Stream>();
  readonly #unread: UnreadResponses;
  readonly #options: ConnectionOptions;
  readonly #bounds: ConnectionBounds;
  readonly #tls: TlsTermination | null;
  readonly #closed: () => void;
  readonly #stream: SocketStream;
  #session: ServerHttp2Session | null = null;
  #http1: Http1Connection | null = null;
  #frames: FrameWatch | null = null;
  #isGoingAway = false;
  #isRefused = false;
  #isOver = false;
  /** When the TLS handshake is overdue. */
  readonly #handshakeDeadline: number;
  /** When the last stream ended. */
  #idleSince: number;
  /** When `max_connection_age` ends. */
  readonly #goAwayAt: number;
  /** When the last GOAWAY is sent to a client that does not acknowledge the PING after the first one. */
  #finalGoAwayAt = Number.POSITIVE_INFINITY;
  /** When a connection that the gateway has ended is closed. */
  #lingerUntil = Number.POSITIVE_INFINITY;

  constructor(routed: RoutedConnection, options: ConnectionOptions, closed: () => void) {
    this.info = routed.info;
    this.#tls = routed.tls;
    this.#options = options;
    this.#bounds = options.bounds();
    this.#unread = new UnreadResponses(this.#bounds.writeTimeout);
    this.#closed = closed;
    this.#stream = new SocketStream(routed.socket);
    this.#idleSince = performance.now();
    this.#handshakeDeadline = this.#idleSince + this.#bounds.handshakeTimeout;
    const { maxAge } = this.#bounds;
    this.#goAwayAt = maxAge === 0 ? Number.POSITIVE_INFINITY : this.#idleSince + spread(maxAge);
    this.#stream.on("error", () => {});
    this.#stream.on("close", () => this.#end());
  }

  /** Whether the kernel has all that the client is to get. */
  get isServed(): boolean {
    return this.openStreams === 0 && this.#stream.writableLength === 0;
  }

  get websocket(): WebSocketHandler<never> {
    return this.#options.websocket;
  }

  get owner(): SocketOwner {
    return this.#stream;
  }

  begin(buffered: Buffer): void {
    if (buffered.length > 0) this.#stream.clientSent(buffered);
    if (this.#tls !== null) this.#shakeHands(this.#tls);
    else if (this.#bounds.offersHttp2)
      // RFC 9113 section 3.3: a client with prior knowledge begins with the preface.
      this.#stream.peek(beginsWithPreface, (isPreface) =>
        isPreface ? this.#serve(this.#stream) : this.#serveHttp1(this.#stream),
      );
    else this.#serveHttp1(this.#stream);
  }

  #serveHttp1(socket: Duplex): void {
    this.#http1 = this.#options.http1().open(socket, {
      ...this.#options,
      ...this.#bounds,
      info: this.info,
      refused: (reason) => this.#options.refused(reason, this.info.address),
      counted: (change) => {
        this.openStreams += change;
      },
    });
    if (this.#isGoingAway) this.#http1.goAway();
  }

  #shakeHands(tls: TlsTermination): void {
    const { TLSSocket } = process.getBuiltinModule("node:tls");
    const socket = new TLSSocket(this.#stream, {
      isServer: true,
      secureContext: tls.context,
      requestCert: tls.requestsCertificate,
      rejectUnauthorized: tls.requiresCertificate,
      ALPNProtocols: this.#bounds.offersHttp2 ? ["h2", "http/1.1"] : ["http/1.1"],
    });
    let isDone = false;
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!isDone) this.#options.onHandshake(false);
      this.close();
    });
    socket.on("secure", () => {
      isDone = true;
      this.#options.onHandshake(true);
      const info = tls.verify(socket, this.info);
      if (typeof info === "string") return this.#refuse(info);
      this.info = info;
      if (socket.alpnProtocol === "h2") this.#serve(socket);
      else this.#serveHttp1(socket);
    });
  }

  #refuse(reason: string): void {
    if (this.#isOver || this.#isRefused) return;
    this.#isRefused = true;
    this.#options.refused(reason, this.info.address);
    if (this.#session === null) return this.close();
    this.#endSession(this.#session, ENHANCE_YOUR_CALM);
  }

  #serve(socket: Duplex): void {
    const { performServerHandshake } = process.getBuiltinModule("node:http2");
    const frames = new FrameWatch(performance.now());
    this.#frames = frames;
    // Before the session's listener.
    socket.on("data", (chunk: Buffer) => {
      const problem = frames.pass(chunk, performance.now());
      if (problem !== null) this.#refuse(problem);
    });
    const options = {
      settings: {
        enablePush: false,
        // RFC 8441.
        enableConnectProtocol: true,
        initialWindowSize: windowOf(this.#bounds.maxStreams),
        maxConcurrentStreams: this.#bounds.maxStreams,
        maxHeaderListSize: MAX_HEADER_LIST_BYTES,
      },
      maxHeaderListPairs: MAX_HEADER_PAIRS,
      // Clients may open streams before they know the limit; each refusal is one small frame.
      maxSessionRejectedStreams: MAX_REFUSED_STREAMS,
      // A field with white space around it makes a request malformed; Node would drop the field.
      strictFieldWhitespaceValidation: false,
      strictSingleValueFields: false,
    };
    const session = withoutHandle(socket, () => performServerHandshake(socket, options as object));
    this.#session = session;
    if (this.#isGoingAway) this.#announce(session);
    session.on("error", () => {});
    // Its last frames are still on their way: the client closes, or the time to do so ends.
    session.on("close", () => {
      this.#lingerUntil = Math.min(this.#lingerUntil, performance.now() + LINGER_MS);
    });
    session.on("stream", (...[stream, , flags, raw]: StreamEvent) =>
      this.#begin(stream, flags, raw),
    );
  }

  #begin(stream: ServerHttp2Stream, flags: number, raw: readonly string[]): void {
    this.openStreams++;
    this.#streams.add(stream);
    stream.on("error", () => {});
    stream.on("close", () => {
      this.openStreams--;
      this.#streams.delete(stream);
      this.#idleSince = performance.now();
    });
    const fields = readRequestFields(raw);
    if (fields === null) return resetStream(stream, PROTOCOL_ERROR);
    const hasBody = (flags & END_STREAM) === 0;
    this.#options.serve(new FullStream(stream, fields, { connection: this, hasBody }));
  }

  goAway(): void {
    const session = this.#session;
    if (this.#isGoingAway) return;
    this.#isGoingAway = true;
    this.#http1?.goAway();
    // A connection without a session hears it as soon as it has one.
    if (session === null || session.destroyed) return;
    this.#announce(session);
  }

  #announce(session: ServerHttp2Session): void {
    // Streams that the client has opened meanwhile are served: the last id follows after a round trip.
    session.goaway(NO_ERROR, LAST_STREAM_ID);
    this.#finalGoAwayAt = performance.now() + LINGER_MS;
    if (!session.ping(() => this.#goAwayFinally())) this.#goAwayFinally();
  }

  /** Ends the connection; the client sees why. */
  #endSession(session: ServerHttp2Session, code: number): void {
    if (session.destroyed) return;
    // Node fills in the last stream id.
    session.goaway(code);
    // What `destroy` itself sends comes too late for the socket.
    setImmediate(() => session.destroy(undefined, code));
  }

  #goAwayFinally(): void {
    this.#finalGoAwayAt = Number.POSITIVE_INFINITY;
    if (this.#session?.destroyed === false) this.#session.close();
  }

  /** Called about once a second. */
  tick(now: number): void {
    const session = this.#session;
    const frames = this.#frames;
    if (now >= this.#lingerUntil) return this.close();
    if (this.#lingerUntil < Number.POSITIVE_INFINITY) return;
    if (this.#http1 !== null) return this.#http1.tick(now);
    if (session === null || frames === null) {
      if (now >= this.#handshakeDeadline) this.#refuse("no complete handshake arrived in time");
      return;
    }
    const late = this.#late(frames, now);
    if (late !== null) return this.#refuse(late);
    this.#unread.tick(this.#streams, session, now);
    if (now >= this.#goAwayAt) this.goAway();
    if (now >= this.#finalGoAwayAt) this.#goAwayFinally();
    if (this.openStreams === 0 && now - this.#idleSince >= this.#bounds.idleTimeout)
      this.#endSession(session, NO_ERROR);
  }

  #late({ isOpen, partialSince }: FrameWatch, now: number): string | null {
    if (partialSince === 0) return null;
    const { handshakeTimeout, headTimeout } = this.#bounds;
    if (!isOpen && now - partialSince >= handshakeTimeout)
      return "no complete HTTP/2 preface arrived in time";
    return isOpen && headTimeout > 0 && now - partialSince >= headTimeout
      ? "the head of a request did not arrive in time"
      : null;
  }

  close(): void {
    // First, because the session would reset open streams without an error code: their clients would take them as complete.
    // For the same reason with a reset: gRPC clients then report UNAVAILABLE.
    this.#stream.destroy(this.openStreams > 0 ? new Error("the connection was closed") : undefined);
    this.#session?.destroy();
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#closed();
  }
}
