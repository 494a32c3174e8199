// How far the windows of request bodies grow for clients that are far away; knows no stream.

/** A stream sends a window in each round trip: 10 MB/s. */
const BYTES_PER_MICROSECOND = 10;
const MOST_BYTES = 1_048_576;
/** Of all windows beyond their first size: what waits for targets that stop to read after they have kept up. */
const ALL_BYTES = 16_777_216;

interface GrowingStream {
  grown: number;
  hasKeptUp: boolean;
}

/** One for each worker. */
export class ReceiveWindows {
  #granted = 0;

  /** Bytes more for the window of a stream, which is `size`; `roundTrip` in microseconds, 0: unknown. */
  grow(stream: GrowingStream, size: number, roundTrip: number): number {
    // Where the target is the slower one, more would only wait.
    if (!stream.hasKeptUp) return 0;
    stream.hasKeptUp = false;
    const wanted = Math.min(MOST_BYTES, roundTrip * BYTES_PER_MICROSECOND);
    const more = Math.max(0, Math.min(size, wanted - size, ALL_BYTES - this.#granted));
    this.#granted += more;
    stream.grown += more;
    return more;
  }

  /** A stream with so many bytes more has ended. */
  release(bytes: number): void {
    this.#granted -= bytes;
  }
}
