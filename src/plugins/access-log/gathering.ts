// Requests that have ended and wait a moment, so that their lines are made one after the other: one by one each costs several times as much. Knows no format.
import type { Subject } from "./subject.ts";

/** Requests that wait at most. */
const SIZE = 64;
/** How long one waits at most. */
const LONGEST_MS = 20;

export class Gathering {
  readonly #write: (subject: Subject) => void;
  readonly #failed: (error: unknown) => void;
  #waiting: Subject[] = [];
  #timer: Timer | null = null;

  /** `failed`: one could not be written. */
  constructor(write: (subject: Subject) => void, failed: (error: unknown) => void) {
    this.#write = write;
    this.#failed = failed;
  }

  add(subject: Subject): void {
    // The server forgets the connection of a request that has ended; whoever has asked once is told again.
    subject.context.clientAddress();
    if (this.#waiting.push(subject) >= SIZE) this.flush();
    else if (this.#timer === null) this.#flushLater();
  }

  /** By itself: in `add`, its closure would be made room for with each request. */
  #flushLater(): void {
    this.#timer = setTimeout(() => this.flush(), LONGEST_MS);
  }

  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const subjects = this.#waiting;
    this.#waiting = [];
    for (const subject of subjects) {
      try {
        this.#write(subject);
      } catch (error) {
        // Called by a clock, where nobody would catch it: the worker would end.
        this.#failed(error);
      }
    }
  }
}
