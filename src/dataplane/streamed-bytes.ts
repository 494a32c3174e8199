// Asks for a collection of garbage when long bodies have left much of it; knows no body.

/** So much of what was passed on may wait to be collected. */
const ENOUGH_BYTES = 33_554_432;

/**
 * Pieces of long bodies are garbage as soon as they are passed on, but the engine lets it grow with all the memory that it knows
 * of, and that includes what is shared with other threads: some 40 MB that never were garbage. Without this, a worker that
 * streams a long body holds twice as much as it needs.
 */
class StreamedBytes {
  #bytes = 0;

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < ENOUGH_BYTES) return;
    this.#bytes = 0;
    // Beside the event loop, not in it.
    Bun.gc(false);
  }
}

/** Of this thread. */
export const streamedBytes = new StreamedBytes();
