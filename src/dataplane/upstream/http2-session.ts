// One HTTP/2 connection to a target with its streams (RFC 9113); knows no request and no route.
import { bufferRelease } from "../buffer-release.ts";
import { failures, type ProxyError } from "../error.ts";
import { ALLOWANCES, type BudgetName, Budgets } from "../http2/budgets.ts";
import { CODE, ConnectionError, FLAG, FRAME, PREFACE } from "../http2/frames.ts";
import { FrameOutput } from "../http2/output.ts";
import { ReadyStreams } from "../http2/priorities.ts";
import { DEFAULT_WINDOW, sendSettings, SETTING } from "../http2/settings.ts";
import type { ConnectionHandler, ConnectionOwner, UpstreamConnection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";
import { MAX_LIST_BYTES, RequestBlock } from "./http2-head.ts";
import { maxWindowOf, type StreamSession, UpstreamStream } from "./http2-stream.ts";
import type { SessionEnd, SessionUser } from "./http2-user.ts";
import { PING_PAYLOAD, PingWatch } from "./ping-watch.ts";
import { ResponseSyntaxError } from "./response-parser.ts";
import { type SessionFrames, TargetFrames } from "./target-frames.ts";

/** Streams of a session at once, where the target has no lower limit. */
const MAX_STREAMS = 256;
/** RFC 9113 section 5.1.1; the session is replaced before. */
const LAST_ID = 2 ** 31 - 1_000_001;
/** Targets end sessions with many resets (CVE-2023-44487): after this number the session gets no new streams. */
const MAX_RESETS = 100;

/** What waits for the kernel besides bodies. More, and the target is not read from. */
const MAX_HELD_BYTES = 131_072;
const MAX_BLOCK_FRAMES = 128;

const SETTINGS: readonly (readonly [id: number, value: number])[] = [
  [SETTING.enablePush, 0],
  [SETTING.maxHeaderListSize, MAX_LIST_BYTES],
];

const blocks = new RequestBlock();

const FIRST = { cause: undefined, isFirst: true };

export interface SessionOwner {
  readonly endpoint: Endpoint;
  /** A connection for the session alone. */
  dial(session: UpstreamSession): UpstreamConnection;
  /** It accepts no more streams, or it has ended. */
  sessionRetired(session: UpstreamSession): void;
  /** Its last stream has ended. */
  sessionIdle(session: UpstreamSession): void;
  now(): number;
}

type State = "connecting" | "open" | "retired" | "closed";

export class UpstreamSession
  implements ConnectionHandler, ConnectionOwner, SessionFrames, StreamSession
{
  /** Streams that were opened. */
  requests = 0;
  /** When it became ready, in the worker's milliseconds. */
  openedAt = Number.NEGATIVE_INFINITY;
  /** When it was last without streams, in the worker's milliseconds. */
  idleSince = 0;
  readonly scheme: "http" | "https";
  /** Of clients that abort often. */
  readonly isApart: boolean;
  readonly streams = new Map<number, UpstreamStream>();
  readonly resetStreams = new Map<number, number>();
  readonly readyStreams = new ReadyStreams();
  readonly budgets = new Budgets();
  readonly output: FrameOutput;
  readonly maxBlockBytes = MAX_LIST_BYTES;
  readonly maxBlockFrames = MAX_BLOCK_FRAMES;
  lastStream = -1;
  /** What the target takes of all streams together. */
  sendWindow = DEFAULT_WINDOW;
  /** When the target last sent bytes, in `performance.now()`. */
  receivedAt = 0;
  /** The same in the worker's milliseconds. */
  heardAt = 0;
  readonly #owner: SessionOwner;
  readonly #connection: UpstreamConnection;
  readonly #users = new Set<SessionUser>();
  /** Those for whose streams the target has no room. */
  readonly #waiting = new Set<SessionUser>();
  readonly #frames = new TargetFrames(this);
  readonly #ping = new PingWatch();
  #state: State = "connecting";
  /** The target's, which may be 0 for a while (RFC 9113 section 6.5.2). */
  #maxStreams = MAX_STREAMS;
  /** Streams of which something was read in this turn. */
  #noted: UpstreamStream[] = [];
  #maxWindow = 0;
  #isFirstBlock = true;
  #isSending = false;
  /** The target does not read, and is not read from. */
  #isPaused = false;
  #resets = 0;
  /** It was retired before it was connected. */
  #retires = false;
  #tickedAt = 0;

  constructor(owner: SessionOwner, isApart = false) {
    this.#owner = owner;
    this.isApart = isApart;
    this.scheme = owner.endpoint.tls === null ? "http" : "https";
    this.#connection = owner.dial(this);
    this.#connection.handler = this;
    this.output = new FrameOutput(this.#connection, () => this.sendReady());
  }

  /** Streams, those too that have not begun. */
  get load(): number {
    return this.#users.size;
  }

  get address(): UpstreamConnection["address"] {
    return this.#connection.address;
  }

  /** Whether streams that have joined may begin. */
  get isReady(): boolean {
    return this.#state === "open" || this.#state === "retired";
  }

  get isConnecting(): boolean {
    return this.#state === "connecting";
  }

  get isOver(): boolean {
    return this.#state === "closed";
  }

  /** Whether one more stream may begin, now or once it is connected. */
  get hasCapacity(): boolean {
    const isUsable = this.#state === "open" || this.#state === "connecting";
    return isUsable && !this.#retires && this.#users.size < Math.max(1, this.#maxStreams);
  }

  /** Whether a stream that has joined may begin now. */
  get hasRoom(): boolean {
    return this.isReady && this.streams.size < this.#maxStreams;
  }

  join(user: SessionUser): void {
    this.#users.add(user);
    this.requests++;
  }

  /** Calls `onSessionReady` again once there is room. */
  awaitRoom(user: SessionUser): void {
    this.#waiting.add(user);
  }

  leave(user: SessionUser): void {
    if (!this.#users.delete(user)) return;
    this.#waiting.delete(user);
    if (this.#users.size > 0) return;
    this.idleSince = this.#owner.now();
    if (this.#state === "open") this.#owner.sessionIdle(this);
    else this.destroy();
  }

  /** Opens a stream with a head in HTTP/1.1 text. Throws RequestSyntaxError. */
  open(user: SessionUser, head: string, isLast: boolean): UpstreamStream {
    blocks.begin(this.#isFirstBlock);
    blocks.request(head, this.scheme);
    this.#isFirstBlock = false;
    this.lastStream += 2;
    const id = this.lastStream;
    const stream = new UpstreamStream(this, user, { id, window: this.#frames.window, isLast });
    this.streams.set(id, stream);
    this.output.headers(id, blocks.block, isLast);
    this.budgets.sent();
    if (id >= LAST_ID) this.retire();
    return stream;
  }

  /** Ends a stream; one that is not complete with `code`. */
  close(stream: UpstreamStream, code: number): void {
    if (this.streams.get(stream.id) !== stream) return;
    this.#forget(stream);
    const isComplete = stream.isLocalEnded && stream.isRemoteEnded;
    if (isComplete || this.#state === "closed") return;
    this.resetStreams.set(stream.id, stream.isRemoteEnded ? 0 : stream.room);
    this.output.uint32(FRAME.rstStream, stream.id, code);
    if (++this.#resets >= MAX_RESETS) this.retire();
  }

  /** The target has reset a stream, or never processes it. */
  forget(stream: UpstreamStream): void {
    if (this.streams.get(stream.id) === stream) this.#forget(stream);
  }

  #forget(stream: UpstreamStream): void {
    this.readyStreams.remove(stream);
    this.streams.delete(stream.id);
    this.#admit();
  }

  #admit(): void {
    if (this.#waiting.size === 0) return;
    for (const user of this.#waiting) {
      if (!this.hasRoom) return;
      this.#waiting.delete(user);
      user.onSessionReady();
    }
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
    this.output.flush();
    this.#end(null);
  }

  /** Called about once a second. */
  tick(now: number): void {
    this.budgets.refill(Math.max(0, now - this.#tickedAt) / 1000);
    this.#tickedAt = now;
    if (this.#ping.isLost(now)) return this.#end(failures.closedEarly);
    if (this.isReady && this.#users.size > 0 && this.#ping.isDue(now, this.heardAt))
      this.output.copy(FRAME.ping, 0, { stream: 0, payload: PING_PAYLOAD });
  }

  acknowledged(payload: Buffer): void {
    this.#ping.acknowledged(payload);
  }

  // Events of the connection.

  connected(): void {
    this.output.raw(PREFACE);
    sendSettings(this.output, SETTINGS);
    this.output.flush();
  }

  received(chunk: Buffer): void {
    this.heardAt = this.#owner.now();
    this.receivedAt = performance.now();
    try {
      this.#frames.push(chunk);
    } catch (error) {
      this.#failed(error);
    }
    // Nothing of it is kept: what has to wait was copied.
    bufferRelease.releaseNow(chunk);
    const noted = this.#noted;
    this.#noted = [];
    for (const stream of noted) stream.afterRead();
    if (this.#connection.heldBytes <= MAX_HELD_BYTES) return;
    this.#isPaused = true;
    this.#connection.pause();
  }

  /** The target has broken a rule: the session ends (RFC 9113 section 5.4.1). */
  #failed(error: unknown): void {
    if (this.#state === "closed") return;
    if (!(error instanceof ConnectionError)) return this.#end(failures.internal(error));
    if (!this.#frames.isOpen) return this.#end(failures.noHttp2);
    this.output.goAway(0, error.code, error.message);
    this.output.send();
    // The others have not broken it: what becomes of them is what a lost connection means.
    const broken = this.streams.get(this.#frames.currentStream);
    broken?.broken(new ResponseSyntaxError(error.message));
    this.#end(null, { cause: error, isFirst: broken === undefined });
  }

  drained(): void {
    if (this.#isPaused) this.#connection.resume();
    this.#isPaused = false;
    this.output.schedule();
  }

  ended(error: ProxyError | null): void {
    this.#end(error);
  }

  // It is the only user of its connection.

  release(): void {}

  closed(): void {}

  #end(error: ProxyError | null, end: Omit<SessionEnd, "error"> = FIRST): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#connection.handler = null;
    this.#owner.sessionRetired(this);
    let { isFirst } = end;
    for (const user of [...this.#users]) {
      user.onSessionEnded({ error, cause: end.cause, isFirst });
      isFirst = false;
    }
    this.#users.clear();
    this.#waiting.clear();
    this.streams.clear();
    this.#connection.destroy();
  }

  // Events of frames.

  charge(name: BudgetName): void {
    if (!this.budgets.take(name))
      throw new ConnectionError(CODE.enhanceYourCalm, ALLOWANCES[name].reason, name);
  }

  targetSettings(maxStreams: number | null): void {
    if (maxStreams !== null) this.#maxStreams = Math.min(MAX_STREAMS, maxStreams);
    if (this.#state === "connecting") this.#ready();
    else this.#admit();
  }

  /** The target's SETTINGS have arrived: it speaks HTTP/2, and its limit is known. */
  #ready(): void {
    this.#state = this.#retires ? "retired" : "open";
    this.openedAt = this.#owner.now();
    let room = Math.max(1, this.#maxStreams);
    for (const user of [...this.#users])
      if (room-- > 0) user.onSessionReady();
      else user.onSessionFull();
  }

  targetLeaves(lastStream: number, code: number): void {
    this.retire();
    for (const stream of [...this.streams.values()]) if (stream.id > lastStream) stream.refused();
    // It is about to close the connection.
    if (code !== CODE.noError) this.#end(null);
  }

  streamError(id: number, code: number): void {
    this.streams.get(id)?.streamError(code);
    this.charge("errors");
  }

  // What streams send.

  ready(stream: UpstreamStream): void {
    if (stream.queue.window > 0) this.readyStreams.add(stream);
    this.output.schedule();
  }

  /** Bytes that the target takes now. */
  get room(): number {
    return this.#connection.isHolding ? 0 : this.sendWindow;
  }

  sendReady(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.room > 0 && this.#state !== "closed") {
      const stream = this.readyStreams.next() as UpstreamStream | null;
      if (stream === null) break;
      this.#sendFrame(stream);
    }
    this.#isSending = false;
  }

  #sendFrame(stream: UpstreamStream): void {
    const { queue, id } = stream;
    const limits = { limit: this.sendWindow, endsStream: stream.trailers.length === 0 };
    this.sendWindow -= queue.sendFrame(this.output, id, limits);
    this.budgets.sent();
    if (queue.size === 0 || queue.window <= 0) this.readyStreams.remove(stream);
    // What the kernel does not take is known before more is read.
    this.output.sendLong();
    stream.wasSent();
  }

  sendEnd(stream: UpstreamStream): void {
    stream.isLocalEnded = true;
    const { id, trailers } = stream;
    if (trailers.length > 0) {
      blocks.begin(false);
      blocks.pairs(trailers);
      this.output.headers(id, blocks.block, true);
    } else this.output.frame(FRAME.data, FLAG.endStream, { stream: id, size: 0 });
  }

  get maxWindow(): number {
    if (this.#maxWindow === 0) this.#maxWindow = maxWindowOf(this.#connection.isNear);
    return this.#maxWindow;
  }

  widen(stream: UpstreamStream, bytes: number): void {
    this.output.uint32(FRAME.windowUpdate, stream.id, bytes);
  }

  noteRead(stream: UpstreamStream): void {
    this.#noted.push(stream);
  }

  boundReads(): void {
    this.#connection.boundReads();
  }
}
