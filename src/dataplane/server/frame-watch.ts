// Follows the frames that an HTTP/2 client sends, for limits that Node's HTTP/2 does not have; knows no socket and no header.

/** RFC 9113 section 3.4. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const FRAME_HEAD_BYTES = 9;

/** RFC 9113 section 6. */
const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const SETTINGS = 4;
const CONTINUATION = 9;
const END_HEADERS = 4;

/** Of one header block. A block of 64 KB needs four of the default size. */
const MAX_CONTINUATIONS = 32;
/** Frames without effect that a connection may send at once, and how many more in each second. */
const MAX_EXTRA_FRAMES = 1000;
const EXTRA_FRAMES_PER_S = 100;

type Step = "preface" | "settings" | "frames";

/** All times in milliseconds of `performance.now()`. */
export class FrameWatch {
  #step: Step = "preface";
  #prefaceBytes = 0;
  readonly #head = new Uint8Array(FRAME_HEAD_BYTES);
  #headBytes = 0;
  /** Bytes of the current frame that have not arrived. */
  #left = 0;
  #isData = false;
  #isInBlock = false;
  #continuations = 0;
  /** Since when a frame other than DATA, or a header block, is incomplete; 0: none is. */
  #partialSince: number;
  #extraFrames = 0;
  #extraSince: number;

  constructor(now: number) {
    this.#partialSince = now;
    this.#extraSince = now;
  }

  /** The client has sent bytes. Returns why the connection must end; null: it goes on. */
  pass(chunk: Uint8Array, now: number): string | null {
    let at = this.#step === "preface" ? this.#readPreface(chunk) : 0;
    if (at < 0) return "the connection does not begin with the HTTP/2 preface";
    while (at < chunk.length) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, chunk.length - at);
        this.#left -= skipped;
        at += skipped;
        continue;
      }
      this.#head[this.#headBytes++] = chunk[at++] ?? 0;
      if (this.#headBytes < FRAME_HEAD_BYTES) continue;
      this.#headBytes = 0;
      const problem = this.#begin(now);
      if (problem !== null) return problem;
    }
    this.#mark(now);
    return null;
  }

  /** The number of bytes that belong to it; -1: it is wrong. */
  #readPreface(chunk: Uint8Array): number {
    const bytes = Math.min(chunk.length, PREFACE.length - this.#prefaceBytes);
    for (let at = 0; at < bytes; at++)
      if (chunk[at] !== PREFACE[this.#prefaceBytes + at]) return -1;
    this.#prefaceBytes += bytes;
    if (this.#prefaceBytes === PREFACE.length) this.#step = "settings";
    return bytes;
  }

  #begin(now: number): string | null {
    const head = this.#head;
    const [high = 0, middle = 0, low = 0, type = 0, flags = 0] = head;
    this.#left = high * 65_536 + middle * 256 + low;
    this.#isData = type === DATA;
    if (this.#step === "settings") {
      // RFC 9113 section 3.4: the preface ends with a SETTINGS frame.
      if (type !== SETTINGS) return "the HTTP/2 preface has no SETTINGS";
      this.#step = "frames";
      return null;
    }
    if (type === HEADERS || type === CONTINUATION) return this.#beginBlock(type, flags);
    return type === PRIORITY || type > CONTINUATION ? this.#countExtra(now) : null;
  }

  #beginBlock(type: number, flags: number): string | null {
    this.#continuations = type === HEADERS ? 0 : this.#continuations + 1;
    if (this.#continuations > MAX_CONTINUATIONS)
      return "a header block has too many CONTINUATION frames";
    this.#isInBlock = (flags & END_HEADERS) === 0;
    return null;
  }

  #countExtra(now: number): string | null {
    const gone = ((now - this.#extraSince) * EXTRA_FRAMES_PER_S) / 1000;
    this.#extraFrames = Math.max(0, this.#extraFrames - gone) + 1;
    this.#extraSince = now;
    return this.#extraFrames > MAX_EXTRA_FRAMES ? "too many frames without effect" : null;
  }

  #mark(now: number): void {
    // DATA may be slow: the limits on request bodies apply to it.
    const isPartial =
      this.#step !== "frames" ||
      this.#isInBlock ||
      this.#headBytes > 0 ||
      (this.#left > 0 && !this.#isData);
    if (!isPartial) this.#partialSince = 0;
    else if (this.#partialSince === 0) this.#partialSince = now;
  }

  /** Whether the client has sent its preface, SETTINGS included. */
  get isOpen(): boolean {
    return this.#step === "frames";
  }

  /** Since when a preface, header block or other frame than DATA is incomplete; 0: none is. */
  get partialSince(): number {
    return this.#partialSince;
  }
}

/** Whether a connection begins with the preface, whose method HTTP/1.1 does not have; null: too few bytes to tell. */
export function beginsWithPreface(start: Uint8Array): boolean | null {
  const length = Math.min(start.length, 4);
  if (!PREFACE.subarray(0, length).equals(start.subarray(0, length))) return false;
  return length < 4 ? null : true;
}
