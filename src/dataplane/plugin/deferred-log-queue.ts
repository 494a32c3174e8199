// Logs ended requests in batches, each of which costs a fraction of single calls; knows no plugin.

/** An ended request that plugins log in a batch. */
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
    // Read now: the server drops the connection of an ended request, the request caches the address.
    log.clientAddress();
    this.#waiting.push(log);
    if (this.#isRunning) return;
    if (this.#waiting.length >= SIZE) this.flush();
    else if (this.#timer === null) this.#flushLater();
  }

  /** A method of its own: in `add`, each request would allocate the closure. */
  #flushLater(): void {
    this.#timer = setTimeout(() => this.flush(), LONGEST_MS);
  }

  /** Logs all waiting requests. Call it before instances are closed, because their log handlers run here. */
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
