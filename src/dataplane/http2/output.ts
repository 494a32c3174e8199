// What the gateway sends on one HTTP/2 connection: all frames of a turn of the event loop in one write; knows no stream.
import { FLAG, FRAME, HEAD_BYTES, MAX_PAYLOAD } from "./frames.ts";

/**
 * Buffers that no connection is filling. Heads of a turn need little; bodies are written when the turn ends, for one connection
 * after the other, into the same memory, which then is in the processor's cache.
 */
class Spare {
  readonly bytes: number;
  readonly #buffers: Buffer[] = [];
  readonly #most: number;

  constructor(bytes: number, most: number) {
    this.bytes = bytes;
    this.#most = most;
  }

  take(): Buffer {
    return this.#buffers.pop() ?? Buffer.allocUnsafeSlow(this.bytes);
  }

  giveBack(buffer: Buffer): void {
    if (this.#buffers.length < this.#most) this.#buffers.push(buffer);
  }
}

const small = new Spare(4096, 256);
const large = new Spare(131_072, 16);

/** What one write has at most for a client that is behind: it is held where the kernel does not take it. */
const CAREFUL_BYTES = 65_536;
/** What is not held back until others are there to be sent with it. */
export const LONG_BYTES = 32_768;

/** Outputs with something to send at the end of this turn. */
const waiting: FrameOutput[] = [];

function flushAll(): void {
  for (let index = 0; index < waiting.length; index++) waiting[index]?.flush();
  waiting.length = 0;
}

/** Where frames go. */
interface FrameSink {
  /** Writes the first bytes of a buffer that the caller uses again. False: the kernel has not taken all of them. */
  writeCopy(bytes: Buffer, size: number): boolean;
  /** Whether the kernel has not taken all that was written. */
  readonly isBehind: boolean;
}

export class FrameOutput {
  /** What belongs to the frame that was begun last. */
  bytes: Buffer | null = null;
  /** System calls for writing. */
  writes = 0;
  readonly #sink: FrameSink;
  readonly #onFlush: () => void;
  #size = 0;
  /** Of `#size`. */
  #limit = CAREFUL_BYTES;
  /** The kernel did not take a write as a whole. */
  #isSlow = false;
  #isWaiting = false;

  /** `onFlush`: the end of the turn, when bodies may add their frames. */
  constructor(sink: FrameSink, onFlush: () => void) {
    this.#sink = sink;
    this.#onFlush = onFlush;
  }

  /** Whether something may be left to be sent at the end of this turn. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Calls `onFlush` at the end of this turn, and sends what there is. */
  schedule(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    if (waiting.push(this) === 1) setImmediate(flushAll);
  }

  /** Begins a frame, whose payload the caller writes to `bytes` from the returned place on. */
  frame(
    type: number,
    flags: number,
    { stream, size }: { readonly stream: number; readonly size: number },
  ): number {
    const needed = HEAD_BYTES + size;
    const bytes = this.#reserve(needed);
    const at = this.#size;
    this.#size = at + needed;
    bytes[at] = size >>> 16;
    bytes[at + 1] = size >>> 8;
    bytes[at + 2] = size;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    bytes[at + 5] = stream >>> 24;
    bytes[at + 6] = stream >>> 16;
    bytes[at + 7] = stream >>> 8;
    bytes[at + 8] = stream;
    if (!this.#isWaiting) this.schedule();
    return at + HEAD_BYTES;
  }

  #reserve(needed: number): Buffer {
    if (this.#size + needed > this.#limit) {
      const isFull = this.#limit === large.bytes || this.#isSlow || this.#sink.isBehind;
      if (isFull) this.send();
      else this.#limit = large.bytes;
    }
    const before = this.bytes;
    if (before !== null && this.#size + needed <= before.length) return before;
    const bytes = (this.#size + needed <= small.bytes ? small : large).take();
    if (before !== null) {
      before.copy(bytes, 0, 0, this.#size);
      small.giveBack(before);
    }
    this.bytes = bytes;
    return bytes;
  }

  /** A frame about one number. */
  uint32(type: number, stream: number, value: number): void {
    const at = this.frame(type, 0, { stream, size: 4 });
    this.bytes?.writeUInt32BE(value, at);
  }

  copy(
    type: number,
    flags: number,
    { stream, payload }: { readonly stream: number; readonly payload: Uint8Array },
  ): void {
    const at = this.frame(type, flags, { stream, size: payload.length });
    this.bytes?.set(payload, at);
  }

  goAway(lastStream: number, code: number, reason = ""): void {
    const payload = Buffer.alloc(8 + reason.length);
    payload.writeUInt32BE(lastStream, 0);
    payload.writeUInt32BE(code, 4);
    payload.latin1Write(reason, 8, reason.length);
    this.copy(FRAME.goAway, 0, { stream: 0, payload });
  }

  /** What is no frame: the preface. */
  raw(bytes: Uint8Array): void {
    const into = this.#reserve(bytes.length);
    into.set(bytes, this.#size);
    this.#size += bytes.length;
    this.schedule();
  }

  /** HEADERS, and CONTINUATION where the block is long. */
  headers(stream: number, block: Buffer, isLast: boolean): void {
    const end = isLast ? FLAG.endStream : 0;
    if (block.length <= MAX_PAYLOAD) {
      this.copy(FRAME.headers, FLAG.endHeaders | end, { stream, payload: block });
      return;
    }
    this.copy(FRAME.headers, end, { stream, payload: block.subarray(0, MAX_PAYLOAD) });
    for (let at = MAX_PAYLOAD; at < block.length; at += MAX_PAYLOAD) {
      const payload = block.subarray(at, at + MAX_PAYLOAD);
      const flags = at + MAX_PAYLOAD >= block.length ? FLAG.endHeaders : 0;
      this.copy(FRAME.continuation, flags, { stream, payload });
    }
  }

  /** The end of the turn, or before it when much waits. */
  flush(): void {
    this.#isWaiting = false;
    this.#onFlush();
    this.send();
  }

  /** What is long is sent at once: the same memory, in the processor's cache, then serves the next one. */
  sendLong(): void {
    if (this.#size >= LONG_BYTES) this.send();
  }

  /** Hands the frames over. */
  send(): void {
    const { bytes } = this;
    if (bytes === null) return;
    if (this.#size > 0) {
      this.writes++;
      if (!this.#sink.writeCopy(bytes, this.#size)) this.#isSlow = true;
    }
    this.#size = 0;
    this.#limit = CAREFUL_BYTES;
    this.bytes = null;
    (bytes.length === small.bytes ? small : large).giveBack(bytes);
  }
}
