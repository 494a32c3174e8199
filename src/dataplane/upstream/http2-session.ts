// One HTTP/2 connection to a target with its streams, on node:http2; knows no request and no route.
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import { failures, type ProxyError } from "../error.ts";
import { type ConnectionHandler, type ConnectionOwner, UpstreamConnection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";
import { type FrameObserver, FrameWalker } from "./http2-frames.ts";
import type { RawFields } from "./http2-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";

/**
 * Flow-control windows in bytes. Bun refills the window of a stream only when half of the *session's* window was used, so a
 * session window above twice that of a stream stalls every response longer than the stream's.
 */
const STREAM_WINDOW = 262_144;
const SESSION_WINDOW = 2 * STREAM_WINDOW;

/** Frames are written at once from this size on. */
const FLUSH_BYTES = 65_536;

/** Limits on response fields; `max_response_head_bytes` is checked for each response. */
const MAX_FIELD_BYTES = 1_048_576;
const MAX_FIELD_PAIRS = 2000;

/** Streams of a session at once, where the target has no lower limit. */
const MAX_STREAMS = 256;

/**
 * Requests with a place for trailers: before those, and where there are none, node:http2 sends an empty DATA frame, of which some
 * servers accept a thousand.
 */
const MAX_TRAILED = 500;

/** Targets end sessions with many resets (CVE-2023-44487): after this number the session gets no new streams. */
const MAX_RESETS = 100;

/** Silence with open streams before the gateway sends a PING, and time for the response. */
const PING_AFTER_MS = 30_000;
const PING_TIMEOUT_MS = 20_000;
/** gRPC servers end connections that send PING more often than every 5 minutes without data. */
const PING_PAUSE_MS = 310_000;

/** A stream's user. */
export interface SessionUser {
  /** The session accepts streams; called at most once. */
  onSessionReady(): void;
  /** The session is open, but the target accepts fewer streams than have joined it. */
  onSessionFull(): void;
  /** The session has ended, or failed to connect. `isFirst`: the failure was reported to no other user. */
  onSessionEnded(error: ProxyError | null, isFirst: boolean): void;
}

export interface SessionOwner {
  /** It accepts no more streams, or it has ended. */
  sessionRetired(session: UpstreamSession): void;
  /** Its last stream has ended. */
  sessionIdle(session: UpstreamSession): void;
  now(): number;
}

type State = "connecting" | "open" | "retired" | "closed";

export class UpstreamSession implements ConnectionHandler, ConnectionOwner, FrameObserver {
  /** Streams that were opened. */
  requests = 0;
  /** When it became ready, in the worker's milliseconds. */
  openedAt = Number.NEGATIVE_INFINITY;
  /** When it was last without streams, in the worker's milliseconds. */
  idleSince = 0;
  readonly scheme: "http" | "https";
  readonly #owner: SessionOwner;
  readonly #connection: UpstreamConnection;
  readonly #users = new Set<SessionUser>();
  /** Ids of open streams, with whether END_STREAM has arrived. */
  readonly #streams = new Map<number, boolean>();
  readonly #frames = new FrameWalker(this);
  #state: State = "connecting";
  #session: ClientHttp2Session | null = null;
  #socket: Duplex | null = null;
  #written: (() => void) | null = null;
  /** Frames that are not written to the connection yet. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #lastStream = 0;
  /** The last stream that GOAWAY names. */
  #lastAccepted = Number.POSITIVE_INFINITY;
  #maxStreams = MAX_STREAMS;
  #resets = 0;
  #trailed = 0;
  /** It was retired before it was connected. */
  #retires = false;
  #receivedAt = 0;
  #pingedAt = Number.NEGATIVE_INFINITY;
  #isPinging = false;

  constructor(endpoint: Endpoint, owner: SessionOwner) {
    this.#owner = owner;
    this.scheme = endpoint.tls === null ? "http" : "https";
    this.#connection = new UpstreamConnection(endpoint, this);
    this.#connection.handler = this;
  }

  get streams(): number {
    return this.#users.size;
  }

  get address(): UpstreamConnection["address"] {
    return this.#connection.address;
  }

  /** Whether streams that have joined may begin. */
  get isReady(): boolean {
    return this.#state === "open" || (this.#state === "retired" && this.#session !== null);
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  get isConnecting(): boolean {
    return this.#state === "connecting";
  }

  /** Whether one more stream may begin, now or once it is connected. */
  get hasCapacity(): boolean {
    const isUsable = this.#state === "open" || this.#state === "connecting";
    return isUsable && !this.#retires && this.#users.size < this.#maxStreams;
  }

  /** When the target last sent bytes, in the worker's milliseconds. */
  get receivedAt(): number {
    return this.#receivedAt;
  }

  join(user: SessionUser): void {
    this.#users.add(user);
    this.requests++;
  }

  leave(user: SessionUser, stream: ClientHttp2Stream | null): void {
    if (!this.#users.delete(user)) return;
    if (stream?.id !== undefined) this.#streams.delete(stream.id);
    if (this.#users.size > 0) return;
    this.idleSince = this.#owner.now();
    if (this.#state === "open") this.#owner.sessionIdle(this);
    else this.destroy();
  }

  /** Opens a stream. Throws when node:http2 rejects the fields, or the session is about to end. */
  request(
    fields: RawFields,
    options: { readonly endStream: boolean; readonly waitForTrailers: boolean },
  ): ClientHttp2Stream {
    const session = this.#session;
    if (session === null) throw new Error("the session has ended");
    const stream = session.request(fields as never, options);
    if (options.waitForTrailers && ++this.#trailed >= MAX_TRAILED) this.retire();
    const register = () => {
      if (stream.id === undefined) return;
      this.#streams.set(stream.id, false);
      this.#lastStream = stream.id;
    };
    // Above the target's limit, which it may have lowered, node:http2 holds the stream back.
    if (stream.pending) stream.once("ready", register);
    else register();
    return stream;
  }

  /** Whether the target has sent all of a stream. */
  isEnded(stream: ClientHttp2Stream): boolean {
    return stream.id !== undefined && this.#streams.get(stream.id) === true;
  }

  /** Whether GOAWAY says that the target never processes a stream (RFC 9113 section 6.8). */
  isRefused(stream: ClientHttp2Stream): boolean {
    return stream.id !== undefined && stream.id > this.#lastAccepted;
  }

  /** Counts a stream that the gateway has reset. */
  countReset(): void {
    if (++this.#resets >= MAX_RESETS) this.retire();
  }

  /** No more streams begin; open ones go on. */
  retire(): void {
    if (this.#state !== "open" && this.#state !== "connecting") return;
    if (this.#state === "open") this.#state = "retired";
    this.#retires = true;
    this.#owner.sessionRetired(this);
    if (this.#users.size === 0) this.destroy();
  }

  /** Ends the session and its streams. */
  destroy(): void {
    this.#end(null);
    this.#connection.destroy();
  }

  /** Pings a silent target, whose failure no timeout of an idle stream would show. About once a second. */
  tick(now: number): void {
    const silentMs = now - this.#receivedAt;
    if (this.#isPinging && now - this.#pingedAt >= PING_TIMEOUT_MS) {
      this.#fail(failures.closedEarly);
      return;
    }
    const isDue = silentMs >= PING_AFTER_MS && now - this.#pingedAt >= PING_PAUSE_MS;
    if (this.#session === null || this.#isPinging || this.#users.size === 0 || !isDue) return;
    this.#pingedAt = now;
    this.#isPinging = true;
    this.#session.ping(() => {
      this.#isPinging = false;
    });
  }

  // Events of the connection.

  connected(): void {
    const socket = new Duplex({
      read() {},
      write: (bytes: Uint8Array, _encoding, done) => {
        this.#pieces.push(bytes);
        this.#pieceBytes += bytes.byteLength;
        if (this.#pieces.length === 1) setImmediate(() => this.#flush());
        if (this.#pieceBytes < FLUSH_BYTES || this.#flush()) done();
        else this.#written = done;
      },
      final: (done) => done(),
    });
    socket.on("error", () => {});
    this.#socket = socket;
    this.#session = this.#begin(socket);
  }

  #begin(socket: Duplex): ClientHttp2Session {
    // Loaded here: gateways without HTTP/2 targets never pay for it.
    const session = process.getBuiltinModule("node:http2").connect(`${this.scheme}://target`, {
      createConnection: () => socket,
      maxHeaderListPairs: MAX_FIELD_PAIRS,
      // A list of fields repeats names; the gateway has decided which.
      strictSingleValueFields: false,
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW,
        maxHeaderListSize: MAX_FIELD_BYTES,
      },
    } as never);
    session.once("connect", () => session.setLocalWindowSize(SESSION_WINDOW));
    session.on("remoteSettings", ({ maxConcurrentStreams }) => {
      // A limit of 0 is temporary (RFC 9113 section 6.5.2): node:http2 holds the stream back.
      this.#maxStreams = Math.min(MAX_STREAMS, Math.max(1, maxConcurrentStreams ?? MAX_STREAMS));
      this.#ready();
    });
    session.on("goaway", (_code, lastStream) => {
      this.#lastAccepted = lastStream;
      this.retire();
    });
    session.on("error", () => this.#fail(null));
    session.on("close", () => this.#fail(null));
    return session;
  }

  /** The target's SETTINGS have arrived: it speaks HTTP/2, and its limit is known. */
  #ready(): void {
    if (this.#state !== "connecting") return;
    this.#state = this.#retires ? "retired" : "open";
    this.openedAt = this.#owner.now();
    let room = this.#maxStreams;
    for (const user of [...this.#users])
      if (room-- > 0) user.onSessionReady();
      else user.onSessionFull();
  }

  received(chunk: Buffer): void {
    this.#receivedAt = this.#owner.now();
    try {
      this.#frames.push(chunk);
      this.#socket?.push(chunk);
    } catch (error) {
      const isSyntax = error instanceof ResponseSyntaxError;
      this.#fail(isSyntax ? failures.protocol(error.message) : failures.noHttp2);
    }
  }

  onEndStream(stream: number): void {
    // RFC 9113 section 5.1: frames on idle streams are an error of the connection.
    if (stream > this.#lastStream)
      throw new ResponseSyntaxError("the target responded on a stream that was never opened");
    if (this.#streams.has(stream)) this.#streams.set(stream, true);
  }

  /** Frames of one turn of the event loop share a system call. False: wait for `drained`. */
  #flush(): boolean {
    const pieces = this.#pieces;
    if (pieces.length === 0) return true;
    const bytes = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    this.#pieces = [];
    this.#pieceBytes = 0;
    return bytes === undefined || this.#state === "closed" || this.#connection.write(bytes);
  }

  drained(): void {
    const written = this.#written;
    this.#written = null;
    written?.();
  }

  ended(error: ProxyError | null): void {
    this.#fail(error);
  }

  // It is the only user of its connection.

  release(): void {}

  closed(): void {}

  #fail(error: ProxyError | null): void {
    this.#end(error);
    this.#connection.destroy();
  }

  #end(error: ProxyError | null): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#connection.handler = null;
    this.#owner.sessionRetired(this);
    let isFirst = true;
    for (const user of [...this.#users]) {
      user.onSessionEnded(error, isFirst);
      isFirst = false;
    }
    this.#users.clear();
    this.#streams.clear();
    const session = this.#session;
    this.#session = null;
    session?.destroy();
    this.#socket?.destroy();
  }
}
