// Gives back the memory of bytes that were passed on; knows no body and no connection.

/** Pieces below this size live in memory that cannot be given back one by one. */
const FREE_FROM_BYTES = 4096;

/** So much of what could not be given back at once may wait to be collected. */
const ENOUGH_BYTES = 33_554_432;

/**
 * Gives the memory of pieces that were copied out back at once. Left to the garbage collector, every request would get
 * fresh memory that is in no cache: 3 microseconds more at 20 KB, 18 at 100 KB (`make bench`), and three times the
 * resident memory under load. Nobody else may hold the pieces.
 */
export function releaseBuffers(pieces: readonly Uint8Array[]): void {
  for (const piece of pieces) {
    if (piece.byteLength < FREE_FROM_BYTES) continue;
    const { buffer } = piece;
    // Pieces of a chunked body share one buffer, and to transfer one twice would throw.
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}

/**
 * Long bodies pass in pieces, each of which is garbage at once. The engine lets garbage grow with all the memory that it knows
 * of, and that includes what threads share: a worker that streams a long body would hold 50 MB that nobody needs.
 */
class PassedOn {
  #bytes = 0;

  /** A piece that was copied out and that nobody else holds. */
  free(piece: Uint8Array): void {
    // A part of a larger buffer, such as one chunk of several: the buffer may still be read.
    if (piece.byteLength === piece.buffer.byteLength) releaseBuffers([piece]);
    else this.leave(piece);
  }

  /** A piece that somebody else may hold on to. */
  leave(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    if (this.#bytes < ENOUGH_BYTES) return;
    this.#bytes = 0;
    // Beside the event loop, not in it.
    Bun.gc(false);
  }
}

/** Of this thread. */
export const passedOn = new PassedOn();
