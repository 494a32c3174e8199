// One stream to a target: what waits to be sent, what has arrived, and the target's window; knows no request.
import type { FieldPairs } from "../../http/fields.ts";
import { bufferRelease } from "../buffer-release.ts";
import { CODE } from "../http2/frames.ts";
import type { SendingStream } from "../http2/peer-frames.ts";
import { NO_PRIORITY, type ReadyList, type ReadyStream } from "../http2/priorities.ts";
import { SendQueue } from "../http2/send-queue.ts";
import { DEFAULT_WINDOW } from "../http2/settings.ts";
import type { ResponseList } from "./http2-head.ts";
import type { StreamUser } from "./http2-user.ts";
import { ResponseSyntaxError } from "./response-parser.ts";

/** The session of a stream. */
export interface StreamSession {
  /** Bytes that the target takes now. */
  readonly room: number;
  /** When the last bytes arrived, in `performance.now()`. */
  readonly receivedAt: number;
  /** The stream's queue has bytes. */
  ready(stream: UpstreamStream): void;
  /** Sends what ends the request: trailers, or an empty frame. */
  sendEnd(stream: UpstreamStream): void;
  /** A target may send so many bytes at most for a client that keeps up. */
  readonly maxWindow: number;
  /** Lets the target send more. */
  widen(stream: UpstreamStream, bytes: number): void;
  /** Calls `afterRead` once all that was read is reported. */
  noteRead(stream: UpstreamStream): void;
  /** Bounds what one read brings. */
  boundReads(): void;
}

/** Bytes: the rate of a far target is its window in each round trip. */
export const maxWindowOf = (isNear: boolean): number => (isNear ? 131_072 : 1_048_576);

/** Short pieces that may wait in one turn. */
const MAX_WAITING_BYTES = 65_536;
const NOTHING_HELD: Buffer[] = [];
/** Smaller pieces have no memory of their own. */
const OWN_MEMORY_BYTES = 4096;

export class UpstreamStream implements SendingStream {
  readonly id: number;
  readonly queue: SendQueue;
  readonly priority = NO_PRIORITY;
  readyList: ReadyList | null = null;
  nextReady: ReadyStream | null = null;
  /** After the request body. */
  trailers: FieldPairs = [];
  /** The target has ended its side. */
  isRemoteEnded = false;
  /** The whole request is sent. */
  isLocalEnded: boolean;
  /** Bytes that the target may still send. */
  room = DEFAULT_WINDOW;
  /** `afterRead` is due. */
  isNoted = false;
  readonly #session: StreamSession;
  /** Null: nothing is reported any more. */
  #user: StreamUser | null;
  /** Begins small, and doubles as it is used. */
  #window = DEFAULT_WINDOW;
  #isPaused = false;
  /** What has arrived while it was paused. */
  #held: Buffer[] = NOTHING_HELD;
  #heldBytes = 0;
  #heldEnd: FieldPairs | null = null;

  constructor(
    session: StreamSession,
    user: StreamUser,
    own: { readonly id: number; readonly window: number; readonly isLast: boolean },
  ) {
    this.#session = session;
    this.#user = user;
    this.id = own.id;
    this.queue = new SendQueue(own.window);
    this.isLocalEnded = own.isLast;
  }

  // The request.

  /** False: it waits; `onDrained` follows, and the bytes must not change until then. */
  write(bytes: Uint8Array): boolean {
    const { queue } = this;
    const room = Math.min(queue.window, this.#session.room, MAX_WAITING_BYTES);
    const isShort = bytes.byteLength < OWN_MEMORY_BYTES;
    const hasRoom = isShort && queue.size + bytes.byteLength <= room;
    queue.push(hasRoom ? Buffer.from(bytes) : bytes, true);
    this.#session.ready(this);
    return hasRoom;
  }

  /** The request is complete. */
  end(trailers: FieldPairs): void {
    const { queue } = this;
    if (queue.isEnded || this.isLocalEnded) return;
    queue.isEnded = true;
    this.trailers = trailers;
    if (queue.size === 0) this.#session.sendEnd(this);
  }

  /** A frame of the queue was sent. */
  wasSent(): void {
    const { queue } = this;
    if (queue.size > 0) return;
    if (!queue.isEnded) this.#user?.onDrained();
    else if (this.trailers.length > 0) this.#session.sendEnd(this);
    else this.isLocalEnded = true;
  }

  // The response.

  /** A head, an interim one, or trailers. */
  fields(list: ResponseList, isLast: boolean): void {
    const user = this.#user;
    if (user === null) return;
    this.#note();
    if (isLast) this.isRemoteEnded = true;
    try {
      user.onFields(list, isLast);
    } catch (error) {
      this.broken(error);
    }
  }

  /** `size`: bytes of the frame with its padding. */
  data(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    if (this.#user === null || start === end) return;
    this.#note();
    const size = end - start;
    // A copy: a part would hold all that was read with it, up to 512 KB.
    const piece = size < OWN_MEMORY_BYTES ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size);
    bytes.copy(piece, 0, start, end);
    if (this.#isPaused) {
      if (this.#held.length === 0) this.#held = [];
      this.#held.push(piece);
      this.#heldBytes += size;
    } else this.#deliver(piece);
  }

  #note(): void {
    if (this.isNoted) return;
    this.isNoted = true;
    this.#session.noteRead(this);
  }

  #deliver(piece: Buffer): void {
    try {
      this.#user?.onContent(piece);
    } catch (error) {
      this.broken(error);
    }
  }

  /** The target has sent all. */
  ended(trailers: FieldPairs): void {
    this.isRemoteEnded = true;
    if (this.#isPaused) this.#heldEnd = trailers;
    else this.#finish(trailers);
  }

  #finish(trailers: FieldPairs): void {
    try {
      this.#user?.onEnd(trailers);
    } catch (error) {
      this.broken(error);
    }
  }

  /** Everything that was read at once is reported. */
  afterRead(): void {
    this.isNoted = false;
    if (this.#user === null || this.isRemoteEnded) return;
    try {
      this.#user.onWaiting();
    } catch (error) {
      this.broken(error);
    }
    this.widen();
  }

  /** Lets the target send on as the client reads. */
  widen(): void {
    if (this.isRemoteEnded || this.#user === null || this.#isPaused) return;
    const used = this.#window - this.#heldBytes - this.room;
    if (used < this.#window / 2) return;
    const wider = Math.min(this.#session.maxWindow, 2 * this.#window);
    const bytes = used + wider - this.#window;
    this.#window = wider;
    this.room += bytes;
    this.#session.widen(this, bytes);
  }

  pause(): void {
    this.#isPaused = true;
    // A client that does not keep up needs no more than the least: the target's window shrinks as it is used.
    this.#window = DEFAULT_WINDOW;
    this.#session.boundReads();
  }

  resume(): void {
    this.#isPaused = false;
    let at = 0;
    for (; at < this.#held.length && !this.#isPaused && this.#user !== null; at++) {
      const piece = this.#held[at];
      if (piece === undefined) break;
      this.#heldBytes -= piece.length;
      this.#deliver(piece);
    }
    if (at > 0) this.#held = this.#held.slice(at);
    const end = this.#heldEnd;
    if (this.#isPaused || this.#user === null) return;
    if (end === null) return this.widen();
    this.#heldEnd = null;
    this.#finish(end);
  }

  /** The response breaks a rule. */
  broken(error: unknown): void {
    const isSyntax = error instanceof ResponseSyntaxError;
    this.#user?.onBroken(error, isSyntax ? CODE.protocol : CODE.internal);
  }

  wasReset(code: number): void {
    this.#user?.onReset(code);
  }

  refused(): void {
    this.#user?.onRefused();
  }

  streamError(code: number): void {
    const error = new ResponseSyntaxError("the target broke the rules of a stream of HTTP/2");
    this.#user?.onBroken(error, code);
  }

  /** Nothing more is reported, and nothing is kept. */
  detach(): void {
    this.#user = null;
    this.queue.clear();
    if (this.#held.length > 0) for (const piece of this.#held) bufferRelease.releaseNow(piece);
    this.#held = NOTHING_HELD;
    this.#heldEnd = null;
  }
}
