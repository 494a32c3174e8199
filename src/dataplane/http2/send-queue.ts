// What waits to be sent of one body, as far as the window of the peer allows; knows no message.
import { bufferRelease, releaseBuffers } from "../buffer-release.ts";
import { FLAG, FRAME, MAX_PAYLOAD } from "./frames.ts";
import type { FrameOutput } from "./output.ts";

export class SendQueue {
  /** Bytes that wait. */
  size = 0;
  /** No more follow. */
  isEnded = false;
  /** What the peer still takes of this stream; below 0 after the peer has lowered its setting (RFC 9113 section 6.9.2). */
  window: number;
  #pieces: Uint8Array[] = [];
  /** Of the first piece. */
  #sent = 0;
  /** Other code still holds the pieces. */
  #isShared = false;
  /** A whole body: its pieces may be parts of one buffer, which is released with the last one. */
  #whole: readonly Uint8Array[] | null = null;

  constructor(window: number) {
    this.window = window;
  }

  /** Nothing is copied until it is sent. */
  push(piece: Uint8Array, isShared: boolean): void {
    this.#pieces.push(piece);
    this.#isShared = isShared;
    this.size += piece.byteLength;
  }

  /** All of a body. */
  pushWhole(pieces: readonly Uint8Array[], isShared: boolean): void {
    for (const piece of pieces) this.push(piece, true);
    this.#whole = isShared ? null : pieces;
    this.isEnded = true;
  }

  /** Sends one frame with at most `limit` bytes. `endsStream`: with the last byte. Returns how many bytes it has. */
  sendFrame(
    output: FrameOutput,
    stream: number,
    { limit, endsStream }: { readonly limit: number; readonly endsStream: boolean },
  ): number {
    const size = Math.min(this.size, limit, this.window, MAX_PAYLOAD);
    const isLast = endsStream && this.isEnded && size === this.size;
    const at = output.frame(FRAME.data, isLast ? FLAG.endStream : 0, { stream, size });
    if (output.bytes !== null) this.#copy(output.bytes, at, size);
    this.size -= size;
    this.window -= size;
    return size;
  }

  #copy(into: Buffer, from: number, size: number): void {
    const end = from + size;
    let at = from;
    while (at < end) {
      const [piece] = this.#pieces;
      if (piece === undefined) return;
      const left = piece.byteLength - this.#sent;
      const part = Math.min(left, end - at);
      into.set(
        part === piece.byteLength ? piece : piece.subarray(this.#sent, this.#sent + part),
        at,
      );
      at += part;
      this.#sent += part;
      if (part === left) this.#shift(piece);
    }
  }

  #shift(piece: Uint8Array): void {
    this.#pieces.shift();
    this.#sent = 0;
    if (!this.#isShared) bufferRelease.releaseNow(piece);
    if (this.#pieces.length > 0 || this.#whole === null) return;
    releaseBuffers(this.#whole);
    this.#whole = null;
  }

  clear(): void {
    this.#pieces = [];
    this.#whole = null;
    this.size = 0;
  }
}
