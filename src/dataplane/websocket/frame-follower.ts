// Follows the frames of one WebSocket peer as they pass (RFC 6455 section 5): headers are read, payloads are not kept; knows no socket.
import { BINARY, CLOSE, isCloseCode, maskInto, PING, PONG, TEXT } from "./frame.ts";

/** Gets every byte of valid frames, in order, in as few pieces as it arrived in. */
export interface FollowerSink {
  /** Bytes to pass on as they are. */
  pass(bytes: Buffer): void;
  /** A whole ping or pong, with its payload unmasked; false: it is not passed on. */
  control(opcode: number, payload: Buffer): boolean;
  /** A frame has ended that `notifyBetween` waited for. */
  between(): void;
  /** The last call: a Close frame as received, which the sink passes on or not. What follows it is dropped. */
  closed(frame: Buffer): void;
  /** The last call: a frame breaks the protocol. Everything before it was passed on, nothing of it. */
  broken(): void;
}

/** The reserved bits that negotiated extensions use. */
export interface ReservedBits {
  /** In the first frame of a message. */
  readonly first: number;
  /** In all others. */
  readonly other: number;
}

const CONTINUATION = 0;
const RESERVED = 0x70;
const MAX_CONTROL_BYTES = 125;
/** Of a header, and of a whole control frame. */
const MAX_UNIT_BYTES = 6 + MAX_CONTROL_BYTES;
const BROKEN = -1;

const NO_BITS: ReservedBits = { first: 0, other: 0 };
/** RFC 7692 section 6: one bit, and only on the first frame. */
const COMPRESSED: ReservedBits = { first: 0x40, other: 0 };
const ANY_BITS: ReservedBits = { first: RESERVED, other: RESERVED };

/** `extensions`: the value of Sec-WebSocket-Extensions in the response; null: none. */
export function reservedBits(extensions: string | null): ReservedBits {
  if (extensions === null) return NO_BITS;
  const isCompression = extensions
    .split(",")
    .every((extension) => extension.trim().split(";", 1)[0]?.trim() === "permessage-deflate");
  return isCompression ? COMPRESSED : ANY_BITS;
}

/** Accepts bytes in any pieces. Holds at most a header, or a control frame, that has not arrived whole. */
export class FrameFollower {
  readonly #sink: FollowerSink;
  /** Whether the peer is a client, whose frames are masked. */
  readonly #isMasked: boolean;
  readonly #reserved: ReservedBits;
  /** A unit, a header of data or a whole control frame, as far as it has arrived. */
  readonly #partial = Buffer.allocUnsafe(MAX_UNIT_BYTES);
  #partialBytes = 0;
  /** Of the last unit. */
  #opcode = 0;
  #isFinal = false;
  #headerBytes = 0;
  #length = 0;
  /** Bytes of the current payload that are still to come. */
  #left = 0;
  #isInMessage = false;
  #isDone = false;
  #notifies = false;

  constructor(
    sink: FollowerSink,
    options: { readonly isMasked: boolean; readonly reserved: ReservedBits },
  ) {
    this.#sink = sink;
    this.#isMasked = options.isMasked;
    this.#reserved = options.reserved;
  }

  /** Whether what was passed on so far ends with a frame, so that another one may follow. */
  get isBetween(): boolean {
    return this.#left === 0;
  }

  /** Calls `between` of the sink at the end of the current frame. */
  notifyBetween(): void {
    this.#notifies = true;
  }

  push(chunk: Buffer): void {
    let at = this.#complete(chunk);
    let start = at;
    while (at < chunk.length && !this.#isDone) {
      if (this.#left > 0) {
        at += this.#skip(chunk.length - at);
        if (this.#left > 0 || !this.#notifies) continue;
        this.#pass(chunk, start, at);
        start = at;
        this.#notify();
        continue;
      }
      const size = this.#unitAt(chunk, at, chunk.length);
      if (size === 0) {
        this.#pass(chunk, start, at);
        this.#partialBytes = chunk.copy(this.#partial, 0, at);
        return;
      }
      if (size < 0 || this.#opcode === CLOSE) {
        this.#pass(chunk, start, at);
        return this.#end(size, chunk, at);
      }
      if (this.#opcode < CLOSE) this.#beginPayload();
      else if (!this.#control(chunk, at)) {
        this.#pass(chunk, start, at);
        start = at + size;
      }
      at += size;
    }
    if (!this.#isDone) this.#pass(chunk, start, at);
  }

  /** Completes the unit of which a part waits; returns how many bytes of the chunk it takes. */
  #complete(chunk: Buffer): number {
    let at = 0;
    while (this.#partialBytes > 0 && at < chunk.length) {
      this.#partial[this.#partialBytes++] = chunk[at++] ?? 0;
      const size = this.#unitAt(this.#partial, 0, this.#partialBytes);
      if (size === 0) continue;
      // A copy: what is passed on may wait.
      const unit = Buffer.from(this.#partial.subarray(0, this.#partialBytes));
      this.#partialBytes = 0;
      if (size < 0 || this.#opcode === CLOSE) this.#end(size, unit, 0);
      else if (this.#opcode < CLOSE) {
        this.#sink.pass(unit);
        this.#beginPayload();
      } else if (this.#control(unit, 0)) this.#sink.pass(unit);
    }
    return at;
  }

  #pass(chunk: Buffer, start: number, end: number): void {
    if (end > start) this.#sink.pass(chunk.subarray(start, end));
  }

  #skip(available: number): number {
    const size = Math.min(this.#left, available);
    this.#left -= size;
    return size;
  }

  #notify(): void {
    this.#notifies = false;
    this.#sink.between();
  }

  #beginPayload(): void {
    this.#isInMessage = !this.#isFinal;
    this.#left = this.#length;
  }

  #end(size: number, bytes: Buffer, at: number): void {
    this.#isDone = true;
    if (size < 0) return this.#sink.broken();
    const payload = this.#payload(bytes, at);
    const isValid =
      payload.length === 0 || (payload.length > 1 && isCloseCode(payload.readUInt16BE()));
    if (isValid) this.#sink.closed(bytes.subarray(at, at + size));
    else this.#sink.broken();
  }

  #control(bytes: Buffer, at: number): boolean {
    return this.#sink.control(this.#opcode, this.#payload(bytes, at));
  }

  /** Of the control frame at `at`, unmasked. */
  #payload(bytes: Buffer, at: number): Buffer {
    const start = at + this.#headerBytes;
    const payload = bytes.subarray(start, start + this.#length);
    if (!this.#isMasked) return payload;
    const plain = Buffer.allocUnsafeSlow(payload.length);
    maskInto(plain, payload, { key: bytes.subarray(start - 4, start), offset: 0 });
    return plain;
  }

  /** Size of the unit at `at`; 0: it has not arrived whole; `BROKEN`. */
  #unitAt(bytes: Buffer, at: number, end: number): number {
    const first = bytes[at] ?? 0;
    if (!this.#isFirstByte(first)) return BROKEN;
    if (end - at < 2) return 0;
    const second = bytes[at + 1] ?? 0;
    const short = second & 0x7f;
    const isControl = this.#opcode >= CLOSE;
    if (((second & 0x80) !== 0) !== this.#isMasked) return BROKEN;
    if (isControl && short > MAX_CONTROL_BYTES) return BROKEN;
    const lengthEnd = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (end - at < lengthEnd) return 0;
    this.#length = short < 126 ? short : longLength(bytes, at, short);
    if (this.#length < 0) return BROKEN;
    this.#headerBytes = this.#isMasked ? lengthEnd + 4 : lengthEnd;
    const size = isControl ? this.#headerBytes + this.#length : this.#headerBytes;
    return end - at < size ? 0 : size;
  }

  /** Whether the first byte of a frame is valid here (RFC 6455 sections 5.2, 5.4 and 5.5). */
  #isFirstByte(first: number): boolean {
    const opcode = first & 0x0f;
    this.#opcode = opcode;
    this.#isFinal = (first & 0x80) !== 0;
    const isMessage = opcode === TEXT || opcode === BINARY;
    const { first: onFirst, other } = this.#reserved;
    if ((first & RESERVED & ~(isMessage ? onFirst : other)) !== 0) return false;
    if (isMessage) return !this.#isInMessage;
    if (opcode === CONTINUATION) return this.#isInMessage;
    return this.#isFinal && (opcode === CLOSE || opcode === PING || opcode === PONG);
  }
}

/** RFC 6455 section 5.2: the shortest form, and the highest bit of the long one is 0; else -1. */
function longLength(bytes: Buffer, at: number, form: number): number {
  if (form === 126) {
    const length = bytes.readUInt16BE(at + 2);
    return length < 126 ? BROKEN : length;
  }
  const high = bytes.readUInt32BE(at + 2);
  if (high >= 0x8000_0000) return BROKEN;
  const length = high * 0x1_0000_0000 + bytes.readUInt32BE(at + 6);
  return length < 65_536 ? BROKEN : length;
}
