// One HTTP/2 connection of our engine: its streams, windows, time limits and end; knows no route.
import type { FieldPairs } from "../../../http/fields.ts";
import type { ConnectionInfo } from "../../listener/connection-info.ts";
import type { OutgoingHead } from "../client-stream.ts";
import type { PeerSocket, SocketUser } from "../peer-socket.ts";
import { altSvcLine, type ConnectionOwner, type ServedConnection } from "../served-connection.ts";
import { BlockWriter } from "./block-writer.ts";
import { type BudgetName, ALLOWANCES, Budgets } from "../../http2/budgets.ts";
import { ClosedStreams } from "./closed-streams.ts";
import { CODE, ConnectionError, FLAG, FRAME } from "../../http2/frames.ts";
import { FrameOutput } from "../../http2/output.ts";
import { ClientFrames, type FramesConnection } from "./peer-frames.ts";
import { ReadyStreams } from "../../http2/priorities.ts";
import { DEFAULT_WINDOW, MAX_WINDOW, sendSettings } from "../../http2/settings.ts";
import { settingsOf, windowOf } from "./settings.ts";
import { ReceiveWindows } from "./receive-windows.ts";
import type { HeadEnd, Http2Stream } from "./stream.ts";

/** What waits for the kernel besides bodies: heads and frames of the connection. More, and the client is not read from. */
const MAX_HELD_BYTES = 131_072;
/** Time for a client to acknowledge the PING after the first GOAWAY. */
const GO_AWAY_MS = 2000;
/** RFC 9113 section 6.8: no stream is refused yet. */
const ALL_STREAMS = MAX_WINDOW;
/** Bytes a second that a client must read of complete responses after `writeTimeout`. */
const LEAST_RATE = 1000;
const GO_AWAY_PING = Buffer.from("go away!");

const blocks = new BlockWriter();
const windows = new ReceiveWindows();

/** ±10 %, so that connections that began together do not end together. */
const spread = (ms: number): number => ms * (0.9 + 0.2 * Math.random());

export class Http2Connection implements SocketUser, FramesConnection, ServedConnection {
  readonly info: ConnectionInfo;
  readonly isHttp2 = true;
  readonly socket: PeerSocket;
  readonly streams = new Map<number, Http2Stream>();
  readonly output: FrameOutput;
  readonly maxStreams: number;
  readonly maxBlockFrames = MAX_BLOCK_FRAMES;
  /** Of each stream, at its begin. */
  readonly receiveWindow: number;
  readonly budgets = new Budgets();
  readonly readyStreams = new ReadyStreams();
  readonly closedStreams = new ClosedStreams((id) =>
    this.output.uint32(FRAME.rstStream, id, CODE.noError),
  );
  /** What the client takes of all streams together. */
  sendWindow = DEFAULT_WINDOW;
  /** Nothing more is read. */
  isOver = false;
  isGoingAway = false;
  readonly #owner: ConnectionOwner;
  readonly #frames: ClientFrames;
  #isFirstBlock = true;
  #isSending = false;
  #idleSince: number;
  #tickedAt: number;
  readonly #goAwayAt: number;
  #finalGoAwayAt = Number.POSITIVE_INFINITY;
  #heldBytes = 0;
  #heldSince = 0;

  constructor(socket: PeerSocket, owner: ConnectionOwner) {
    const now = performance.now();
    const listener = owner.listener();
    const { max_concurrent_streams: maxStreams, max_header_bytes: maxHeadBytes } = listener;
    const maxAge = listener.max_connection_age * 1000;
    this.#owner = owner;
    this.info = owner.info;
    this.socket = socket;
    socket.handOver(this);
    this.maxStreams = maxStreams;
    this.receiveWindow = windowOf(maxStreams);
    this.output = new FrameOutput(socket, () => this.sendReady());
    this.#frames = new ClientFrames(this, now);
    this.#idleSince = now;
    this.#tickedAt = now;
    this.#goAwayAt = maxAge === 0 ? Number.POSITIVE_INFINITY : now + spread(maxAge);
    sendSettings(this.output, settingsOf({ maxStreams, maxHeadBytes }));
  }

  /** Requests in progress. */
  get pending(): number {
    return this.streams.size;
  }

  /** Whether the kernel has all that the client is to get. */
  get isServed(): boolean {
    return this.streams.size === 0 && this.socket.heldBytes === 0 && !this.output.isWaiting;
  }

  get maxHeadBytes(): number {
    return this.#owner.listener().max_header_bytes;
  }

  get maxBlockBytes(): number {
    return 2 * this.maxHeadBytes + EXTRA_BLOCK_BYTES;
  }

  /** `buffered`: what the client has sent so far. */
  begin(buffered: Buffer): void {
    if (this.isGoingAway) this.#announce();
    if (buffered.length > 0) this.socket.clientSent(buffered);
  }

  // Events of the socket.

  received(chunk: Buffer): void {
    if (this.isOver) return;
    try {
      this.#frames.push(chunk);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.#fail(error);
    }
    this.#holdBack();
  }

  /** A client that does not read what it gets is not read from. */
  #holdBack(): void {
    if (this.socket.heldBytes > MAX_HELD_BYTES) this.socket.pause();
  }

  drained(): void {
    this.socket.resume();
    this.output.schedule();
  }

  /** FIN: HTTP/2 has no half-closed connections, so the client has gone. */
  ended(): void {
    this.#leaveStreams();
    this.#finish();
  }

  closed(): void {
    this.isOver = true;
    this.#leaveStreams();
    this.#owner.closed();
  }

  #leaveStreams(): void {
    const streams = [...this.streams.values()];
    this.streams.clear();
    for (const stream of streams) {
      this.readyStreams.remove(stream);
      windows.release(stream.grown);
      stream.gone();
    }
  }

  // Streams.

  serve(stream: Http2Stream): void {
    this.streams.set(stream.id, stream);
    try {
      this.#owner.serve(stream);
    } catch {
      // Thrown by an event of the socket, it would go unnoticed.
      stream.abort();
    }
  }

  streamEnded(stream: Http2Stream, reset: number | null): void {
    if (reset === CODE.noError) this.closedStreams.linger(stream.id, this.#roomOf(stream));
    else if (reset !== null) this.reset(stream.id, reset);
    this.#forget(stream);
  }

  /** The client has reset a stream. */
  clientReset(stream: Http2Stream): void {
    this.#forget(stream);
    stream.gone();
    this.charge("resets");
  }

  /** Ends one stream for what the client has sent on it (RFC 9113 section 5.4.2). */
  streamError(id: number, code: number): void {
    const stream = this.streams.get(id);
    this.reset(id, code);
    if (stream !== undefined) {
      this.#forget(stream);
      stream.gone();
    }
    this.charge("errors");
  }

  #forget(stream: Http2Stream): void {
    this.readyStreams.remove(stream);
    if (!this.streams.delete(stream.id)) return;
    windows.release(stream.grown);
    if (this.streams.size > 0) return;
    this.#idleSince = performance.now();
    if (this.isGoingAway && this.#finalGoAwayAt === Number.POSITIVE_INFINITY) this.#finish();
  }

  reset(id: number, code: number): void {
    this.closedStreams.wasReset(id, this.#roomOf(this.streams.get(id)));
    this.output.uint32(FRAME.rstStream, id, code);
  }

  /** Bytes that the client may still send on a stream. */
  #roomOf(stream: Http2Stream | undefined): number {
    if (stream === undefined) return this.receiveWindow;
    return this.receiveWindow + stream.grown - (stream.received - stream.returned);
  }

  /** Throws ConnectionError once a budget is used up. */
  charge(name: BudgetName): void {
    if (!this.budgets.take(name))
      throw new ConnectionError(CODE.enhanceYourCalm, ALLOWANCES[name].reason, name);
  }

  // What streams send.

  sendHead(stream: Http2Stream, head: OutgoingHead, end: HeadEnd): void {
    this.#beginBlock();
    blocks.head(head, end, altSvcLine(this.#owner.listener()));
    this.output.headers(stream.id, blocks.block, end.isLast);
  }

  sendFields(stream: Http2Stream, status: number | null, fields: FieldPairs): void {
    this.#beginBlock();
    if (status !== null) blocks.status(status);
    blocks.pairs(fields);
    this.output.headers(stream.id, blocks.block, status === null);
  }

  #beginBlock(): void {
    blocks.begin(this.#isFirstBlock);
    this.#isFirstBlock = false;
  }

  sendData(stream: Http2Stream, limit: number): number {
    const { queue, id, endsWithData: endsStream } = stream;
    const wasCut = queue.window < queue.size && queue.window < SMALL_BYTES;
    const size = queue.sendFrame(this.output, id, { limit, endsStream });
    this.sendWindow -= size;
    // A client that lets the gateway send a few bytes at a time has no use for as many frames of its own.
    if (!wasCut) this.budgets.sent();
    return size;
  }

  sendEnd(stream: Http2Stream): void {
    this.output.frame(FRAME.data, FLAG.endStream, { stream: stream.id, size: 0 });
  }

  ready(stream: Http2Stream): void {
    if (stream.queue.window > 0) this.readyStreams.add(stream);
    this.output.schedule();
  }

  sendReady(): void {
    // A stream whose queue is empty may write at once.
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.sendWindow > 0 && this.socket.heldBytes === 0 && !this.socket.isClosed) {
      const stream = this.readyStreams.next() as Http2Stream | null;
      if (stream === null) break;
      stream.sendFrame(this.sendWindow);
      if (stream.queue.size === 0 || stream.queue.window <= 0) this.readyStreams.remove(stream);
    }
    this.#isSending = false;
    this.output.sendLong();
  }

  get room(): number {
    return this.socket.heldBytes > 0 ? 0 : this.sendWindow;
  }

  get isBehind(): boolean {
    return this.socket.isBehind;
  }

  bodyRead(stream: Http2Stream): void {
    if (stream.isRemoteEnded || !this.streams.has(stream.id)) return;
    const { unread } = stream;
    const consumed = stream.received - unread;
    const returned = consumed - stream.returned;
    const window = this.receiveWindow + stream.grown;
    if (unread === 0) stream.hasKeptUp = true;
    if (returned < window / 2) return;
    const more = windows.grow(stream, window, this.socket.roundTrip);
    stream.returned = consumed;
    this.output.uint32(FRAME.windowUpdate, stream.id, returned + more);
  }

  // The end.

  /** Ends the connection for what the client has sent (RFC 9113 section 5.4.1). */
  #fail({ code, message, end }: ConnectionError): void {
    if (this.isOver) return;
    this.#owner.refused(message);
    this.#owner.onHttp2End(end);
    this.#leave(code, message);
    this.#leaveStreams();
    this.#finish();
  }

  #leave(code: number, reason = ""): void {
    this.output.goAway(this.#frames.lastStream, code, reason);
  }

  /** Sends what is left, and FIN. */
  #finish(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.output.flush();
    this.socket.finish(performance.now());
  }

  /** The client opens no more streams: it has sent GOAWAY. */
  clientLeaves(): void {
    this.isGoingAway = true;
    if (this.streams.size === 0) this.#finish();
  }

  /** Asks the client to open another connection; the requests on this one go on. */
  goAway(): void {
    if (this.isGoingAway || this.isOver) return;
    this.isGoingAway = true;
    this.#announce();
  }

  /** Streams that the client has opened meanwhile are served: the last id follows after a round trip. */
  #announce(): void {
    this.output.goAway(ALL_STREAMS, CODE.noError);
    this.output.copy(FRAME.ping, 0, { stream: 0, payload: GO_AWAY_PING });
    this.#finalGoAwayAt = performance.now() + GO_AWAY_MS;
  }

  /** A PING was acknowledged. */
  acknowledged(payload: Buffer): void {
    if (this.#finalGoAwayAt < Number.POSITIVE_INFINITY && payload.equals(GO_AWAY_PING))
      this.#goAwayFinally();
  }

  #goAwayFinally(): void {
    this.#finalGoAwayAt = Number.POSITIVE_INFINITY;
    this.#leave(CODE.noError);
    this.#frames.refusesStreams = true;
    if (this.streams.size === 0) this.#finish();
  }

  /** Called about once a second. */
  tick(now: number): void {
    this.socket.tick(now);
    if (this.isOver || this.socket.isClosed) return;
    this.budgets.refill((now - this.#tickedAt) / 1000);
    this.#tickedAt = now;
    this.closedStreams.tick(now);
    const { headTimeout, idleTimeout, writeTimeout } = this.#owner.bounds();
    const late = this.#frames.late(now, headTimeout || idleTimeout);
    if (late !== null) return this.#fail(new ConnectionError(CODE.enhanceYourCalm, late, "heads"));
    if (writeTimeout > 0 && this.#isUnread(now, writeTimeout)) return this.#endUnread();
    if (now >= this.#goAwayAt) this.goAway();
    if (now >= this.#finalGoAwayAt) this.#goAwayFinally();
    const isIdle = this.streams.size === 0 && this.socket.heldBytes === 0;
    if (isIdle) this.#frames.rest();
    if (!isIdle || now - this.#idleSince < idleTimeout || !this.#frames.isOpen) return;
    this.#leave(CODE.noError);
    this.#finish();
  }

  #endUnread(): void {
    this.#owner.refused("a client of HTTP/2 reads nothing");
    this.#owner.onHttp2End("unread");
    this.socket.destroy();
  }

  /** Whether the client reads nothing of what is complete. Streams of which it does not are reset (CVE-2019-9517). */
  #isUnread(now: number, timeout: number): boolean {
    for (const stream of [...this.streams.values()]) {
      const { completeAt, queue } = stream;
      if (completeAt === 0 || queue.size === 0) continue;
      if (stream.progressSize !== queue.size) stream.progressAt = now;
      stream.progressSize = queue.size;
      const isStalled = now - stream.progressAt >= timeout;
      const isSlow = now - completeAt >= timeout + (queue.size / LEAST_RATE) * 1000;
      if (isStalled || isSlow) stream.reset(CODE.internal);
    }
    const held = this.socket.heldBytes;
    if (held !== this.#heldBytes) this.#heldSince = now;
    this.#heldBytes = held;
    return held > 0 && this.streams.size === 0 && now - this.#heldSince >= timeout;
  }

  /** Closes at once. */
  close(): void {
    this.socket.destroy();
  }
}

/** 256 KB need sixteen. */
const MAX_BLOCK_FRAMES = 32;
/** Of a list in Huffman code, and of names that lines of HTTP/1.1 do not have. */
const EXTRA_BLOCK_BYTES = 16_384;
/** A part of a body that is not worth a frame. */
const SMALL_BYTES = 512;
