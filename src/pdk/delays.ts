// Delayed requests: bounded in number, released when the client disconnects or the instance closes; knows no plugin.

/** For one instance in one worker. */
const MAX_WAITING = 10_000;

/** One for each instance that delays requests. */
export class Delays {
  readonly #max: number;
  readonly #releases = new Set<() => void>();

  constructor(max = MAX_WAITING) {
    this.#max = max;
  }

  get size(): number {
    return this.#releases.size;
  }

  /** Resolves after so long, or earlier: when the client disconnects, at `end`, and at once when too many wait. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#releases.size >= this.#max) return Promise.resolve();
    return new Promise((resolve) => {
      const release = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", release);
        this.#releases.delete(release);
        resolve();
      };
      const timer = setTimeout(release, milliseconds);
      signal.addEventListener("abort", release);
      this.#releases.add(release);
    });
  }

  end(): void {
    for (const release of [...this.#releases]) release();
  }
}
