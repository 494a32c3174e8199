// The deferred effects of a candidate version on live state, and the cleanup of what it has opened; knows no version.
import type { Pace } from "../pace.ts";

/**
 * Preparing a version reads live state and does not write it. The writes are listed here: configure, renew, forget,
 * create, claim. Either `activate` runs them, or `discard` drops them and closes what was opened.
 */
export class Intents {
  #pending: (() => void)[] = [];
  #opened: (() => void)[] = [];

  /** `work` runs once, right before the version becomes active. */
  onActivate(work: () => void): void {
    this.#pending.push(work);
  }

  /** `close` runs once, when the version is discarded. */
  onDiscard(close: () => void): void {
    this.#opened.push(close);
  }

  /** Runs the work in slices, because there may be thousands of targets. */
  async activate(pace: Pace): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    this.#opened = [];
    for (const work of pending) {
      work();
      if (pace.isDue()) await pace.rest();
    }
  }

  discard(): void {
    const opened = this.#opened;
    this.#pending = [];
    this.#opened = [];
    for (const close of opened) close();
  }
}
