// What a version in the making wants done to what is live, and how to undo what it has opened; knows no version.
import type { Pace } from "../pace.ts";

/**
 * Preparing a version reads what is live and writes none of it. What it wants to write is a list here: configure, renew, forget,
 * create, claim. Either `activate` runs that, or `discard` drops it and closes what was opened.
 */
export class Intents {
  #wanted: (() => void)[] = [];
  #opened: (() => void)[] = [];

  /** `work` runs once, right before the version is served. */
  onActivate(work: () => void): void {
    this.#wanted.push(work);
  }

  /** `close` runs once, when the version is discarded. */
  onDiscard(close: () => void): void {
    this.#opened.push(close);
  }

  /** The version is decided on: in slices, because it may want something of thousands of targets. */
  async activate(pace: Pace): Promise<void> {
    const wanted = this.#wanted;
    this.#wanted = [];
    this.#opened = [];
    for (const work of wanted) {
      work();
      if (pace.isDue()) await pace.rest();
    }
  }

  discard(): void {
    const opened = this.#opened;
    this.#wanted = [];
    this.#opened = [];
    for (const close of opened) close();
  }
}
