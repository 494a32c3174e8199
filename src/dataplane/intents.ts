// What a version in the making wants done to what is live, and how to undo what it has opened; knows no version.

/**
 * Preparing a version reads what is live and writes none of it. What it wants to write is kept here: configure, renew, forget,
 * create, claim. Either `activate` runs that, or `discard` drops it and closes what was opened.
 */
export class Intents {
  readonly #wanted: (() => void)[] = [];
  readonly #opened: (() => void)[] = [];

  /** `work` runs once, right before the version is served. */
  onActivate(work: () => void): void {
    this.#wanted.push(work);
  }

  /** `close` runs once, when the version is discarded. */
  onDiscard(close: () => void): void {
    this.#opened.push(close);
  }

  activate(): void {
    this.#opened.length = 0;
    for (const work of this.#wanted.splice(0)) work();
  }

  discard(): void {
    this.#wanted.length = 0;
    for (const close of this.#opened.splice(0)) close();
  }
}
