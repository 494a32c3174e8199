// Runs what plugins log of ended requests in groups: one by one, each costs several times as much; knows no plugin.

/** An ended request that plugins log with others. */
export interface DeferredLog {
  clientAddress(): string;
  /** `now`: the current time of `performance.now()`. */
  logBatch(now: number): void;
}

/** Requests that wait at most. */
const SIZE = 64;
/** Milliseconds that one waits at most. */
const LONGEST_MS = 20;

export class DeferredLogQueue {
  #waiting: DeferredLog[] = [];
  #isRunning = false;
  #timer: Timer | null = null;

  add(log: DeferredLog): void {
    // The server forgets the connection of a request that has ended; what was asked once is known.
    log.clientAddress();
    this.#waiting.push(log);
    if (this.#isRunning) return;
    if (this.#waiting.length >= SIZE) this.flush();
    else if (this.#timer === null) this.#flushLater();
  }

  /** By itself: in `add`, each request would make room for its closure. */
  #flushLater(): void {
    this.#timer = setTimeout(() => this.flush(), LONGEST_MS);
  }

  /** Logs all that wait: before instances are closed, because those that saw the requests log them. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#isRunning) return;
    this.#isRunning = true;
    const now = performance.now();
    // A plugin may end a request while it logs another one.
    for (let at = 0; at < this.#waiting.length; at++) this.#waiting[at]?.logBatch(now);
    this.#waiting = [];
    this.#isRunning = false;
  }
}
