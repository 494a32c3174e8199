// The frames of HTTP/2 and their error codes (RFC 9113 sections 6 and 7), and bytes as frames; knows no stream.
import { partOf } from "../buffer-release.ts";

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
  /** RFC 9218 section 7.1. */
  priorityUpdate: 16,
} as const;

export const FLAG = {
  endStream: 1,
  ack: 1,
  endHeaders: 4,
  padded: 8,
  priority: 32,
} as const;

export const CODE = {
  noError: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  connect: 10,
  enhanceYourCalm: 11,
  http11Required: 13,
} as const;

export const HEAD_BYTES = 9;
/** SETTINGS_MAX_FRAME_SIZE of both sides: the least that there is (RFC 9113 section 6.5.2). */
export const MAX_PAYLOAD = 16_384;
/** RFC 9113 section 3.4. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Whether the bytes are the preface, as far as they go. */
export function beginsWithPreface(bytes: Buffer): boolean {
  const size = Math.min(bytes.length, PREFACE.length);
  return bytes.subarray(0, size).equals(PREFACE.subarray(0, size));
}

/** Why a connection ends with an error: a budget, heads, or any other. */
export type ErrorEnd = "frames" | "resets" | "errors" | "refusals" | "heads" | "protocol";

/** Ends the connection (RFC 9113 section 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number;
  readonly end: ErrorEnd;

  constructor(code: number, message: string, end: ErrorEnd = "protocol") {
    super(message);
    this.code = code;
    this.end = end;
  }
}

/** One frame. `bytes` from `start` to `end` is its payload; the object is used again for the next frame. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

const EMPTY = Buffer.alloc(0);

/** Reads frames, however their bytes arrive. */
export class FrameReader {
  readonly #onFrame: (frame: Frame) => void;
  readonly #preface: Buffer;
  #prefaceBytes = 0;
  #isFirst = true;
  /** A frame that has not arrived completely. */
  #partial: Buffer | null = null;
  #partialBytes = 0;
  readonly #frame: { -readonly [Key in keyof Frame]: Frame[Key] } = {
    type: 0,
    flags: 0,
    stream: 0,
    bytes: EMPTY,
    start: 0,
    end: 0,
  };

  /** `preface`: precedes the frames; empty: nothing does. */
  constructor(onFrame: (frame: Frame) => void, preface: Buffer) {
    this.#onFrame = onFrame;
    this.#preface = preface;
  }

  /** Whether the preface and the first SETTINGS have arrived. */
  get isOpen(): boolean {
    return !this.#isFirst;
  }

  /** Whether the beginning of a frame has arrived and not its end; not of DATA, whose time is that of the body. */
  get isWithinFrame(): boolean {
    const partial = this.#partial;
    return partial !== null && (this.#partialBytes < HEAD_BYTES || partial[3] !== FRAME.data);
  }

  /** Throws ConnectionError. `isOver`: whether the rest is to be dropped. */
  push(chunk: Buffer, isOver: () => boolean): void {
    let at = this.#prefaceBytes < this.#preface.length ? this.#readPreface(chunk) : 0;
    if (this.#partial !== null) at = this.#complete(chunk, at);
    while (chunk.length - at >= HEAD_BYTES && !isOver()) {
      const size = HEAD_BYTES + this.#payloadAt(chunk, at);
      if (chunk.length - at < size) break;
      this.#read(chunk, at, at + size);
      at += size;
    }
    if (at < chunk.length && !isOver()) this.#keep(chunk, at);
  }

  #readPreface(chunk: Buffer): number {
    const preface = this.#preface;
    let at = 0;
    while (at < chunk.length && this.#prefaceBytes < preface.length) {
      if (chunk[at++] !== preface[this.#prefaceBytes++])
        throw new ConnectionError(CODE.protocol, "the HTTP/2 preface is not valid");
    }
    return at;
  }

  /** Bytes of the payload. A frame that is too long is refused before it arrives. */
  #payloadAt(bytes: Buffer, at: number): number {
    const size = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    if (
      this.#isFirst &&
      ((bytes[at + 3] ?? 0) !== FRAME.settings || ((bytes[at + 4] ?? 0) & FLAG.ack) !== 0)
    )
      throw new ConnectionError(CODE.protocol, "the first HTTP/2 frame is not SETTINGS");
    if (size > MAX_PAYLOAD)
      throw new ConnectionError(CODE.frameSize, "an HTTP/2 frame is too long");
    return size;
  }

  /** The rest of the frame that is incomplete; returns where the next one begins. */
  #complete(chunk: Buffer, from: number): number {
    let at = from;
    let partial = this.#partial ?? EMPTY;
    if (this.#partialBytes < HEAD_BYTES) {
      at += this.#take(partial, chunk, { at, end: HEAD_BYTES });
      if (this.#partialBytes < HEAD_BYTES) return at;
    }
    const size = HEAD_BYTES + this.#payloadAt(partial, 0);
    if (partial.length < size) {
      const whole = Buffer.allocUnsafe(size);
      partial.copy(whole, 0, 0, this.#partialBytes);
      partial = whole;
      this.#partial = whole;
    }
    at += this.#take(partial, chunk, { at, end: size });
    if (this.#partialBytes < size) return at;
    this.#partial = null;
    this.#partialBytes = 0;
    this.#read(partial, 0, size);
    return at;
  }

  #take(
    into: Buffer,
    chunk: Buffer,
    { at, end }: { readonly at: number; readonly end: number },
  ): number {
    const size = Math.min(end - this.#partialBytes, chunk.length - at);
    chunk.copy(into, this.#partialBytes, at, at + size);
    this.#partialBytes += size;
    return size;
  }

  #keep(chunk: Buffer, at: number): void {
    const left = chunk.length - at;
    const size = left < HEAD_BYTES ? HEAD_BYTES : HEAD_BYTES + this.#payloadAt(chunk, at);
    this.#partial = Buffer.allocUnsafe(size);
    chunk.copy(this.#partial, 0, at);
    this.#partialBytes = left;
  }

  #read(bytes: Buffer, at: number, end: number): void {
    this.#isFirst = false;
    const frame = this.#frame;
    frame.type = bytes[at + 3] ?? 0;
    frame.flags = bytes[at + 4] ?? 0;
    frame.stream = uint31At(bytes, at + 5);
    frame.bytes = bytes;
    frame.start = at + HEAD_BYTES;
    frame.end = end;
    this.#onFrame(frame);
    // Its memory may be used otherwise from now on.
    frame.bytes = EMPTY;
  }
}

export const uint31At = (bytes: Buffer, at: number): number =>
  (((bytes[at] ?? 0) & 0x7f) << 24) |
  ((bytes[at + 1] ?? 0) << 16) |
  ((bytes[at + 2] ?? 0) << 8) |
  (bytes[at + 3] ?? 0);

export const uint32At = (bytes: Buffer, at: number): number =>
  (uint31At(bytes, at) + ((bytes[at] ?? 0) & 0x80) * 0x1000000) >>> 0;

/**
 * The payload without padding and, of HEADERS, without the priority of RFC 7540, which has no effect (RFC 9113 section 5.3.2).
 * `part`: where it begins and ends; changed.
 */
export function withoutPadding(frame: Frame, part: { start: number; end: number }): void {
  let { start, end } = frame;
  if ((frame.flags & FLAG.padded) !== 0) {
    if (start === end)
      throw new ConnectionError(CODE.frameSize, "an HTTP/2 frame has no padding length");
    end -= frame.bytes[start] ?? 0;
    start++;
  }
  const hasPriority = frame.type === FRAME.headers && (frame.flags & FLAG.priority) !== 0;
  if (hasPriority) start += 5;
  if (start > frame.end) throw new ConnectionError(CODE.frameSize, "an HTTP/2 frame is too short");
  if (hasPriority) checkPriority(frame, start - 5);
  if (start > end)
    throw new ConnectionError(CODE.protocol, "the padding of an HTTP/2 frame is too long");
  part.start = start;
  part.end = end;
}

/** All that is read of it: RFC 7540 section 5.3.1 calls a stream that depends on itself an error. */
export function checkPriority({ bytes, stream }: Frame, at: number): void {
  if (uint31At(bytes, at) === stream)
    throw new ConnectionError(CODE.protocol, "an HTTP/2 stream depends on itself");
}

/** What the frame carries: a copy where it is short. */
export const payloadOf = ({ bytes, start, end }: Frame): Buffer => partOf(bytes, start, end);
