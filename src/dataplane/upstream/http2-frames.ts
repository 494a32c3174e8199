// Follows the frames that a target sends, without their content (RFC 9113 section 4.1); knows no stream and no field.

const HEADER_BYTES = 9;
const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const ACK = 1;
const END_STREAM = 1;

export interface FrameObserver {
  /** A frame with END_STREAM has arrived completely. */
  onEndStream(stream: number): void;
}

/** The target's first bytes are not HTTP/2. */
class NotHttp2Error extends Error {}

/** node:http2 reports a stream that was reset with code 0 as if it had ended: only the frames tell the difference. */
export class FrameWalker {
  readonly #observer: FrameObserver;
  readonly #header = new Uint8Array(HEADER_BYTES);
  #headerBytes = 0;
  /** Bytes of the current frame's payload that are missing. */
  #missing = 0;
  #isFirst = true;

  constructor(observer: FrameObserver) {
    this.#observer = observer;
  }

  /** Throws NotHttp2Error when the first frame is not SETTINGS (RFC 9113 section 3.4). */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#headerBytes < HEADER_BYTES) {
        this.#header[this.#headerBytes++] = bytes[at++] ?? 0;
        if (this.#headerBytes < HEADER_BYTES) continue;
        this.#begin();
      } else {
        const used = Math.min(this.#missing, bytes.length - at);
        at += used;
        this.#missing -= used;
      }
      if (this.#missing === 0) this.#end();
    }
  }

  #begin(): void {
    const header = this.#header;
    this.#missing = ((header[0] ?? 0) << 16) | ((header[1] ?? 0) << 8) | (header[2] ?? 0);
    if (!this.#isFirst) return;
    this.#isFirst = false;
    if (header[3] !== SETTINGS || ((header[4] ?? 0) & ACK) !== 0) throw new NotHttp2Error();
  }

  #end(): void {
    this.#headerBytes = 0;
    const header = this.#header;
    const type = header[3];
    if ((type !== DATA && type !== HEADERS) || ((header[4] ?? 0) & END_STREAM) === 0) return;
    const [, , , , , first = 0, second = 0, third = 0, fourth = 0] = header;
    this.#observer.onEndStream(((first & 0x7f) << 24) | (second << 16) | (third << 8) | fourth);
  }
}
