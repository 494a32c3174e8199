// The requests in flight of a worker and the one timer for all of them; knows no HTTP.

/**
 * One request in flight; `tick` runs about ten times a second. An intrusive list node: a Set would
 * cost 2 microseconds of a request's 30.
 */
export interface InFlightEntry {
  previous: InFlightEntry | null;
  next: InFlightEntry | null;
  isListed: boolean;
  tick(now: number): void;
}

const TICK_MS = 100;

/**
 * A timeout costs a request a comparison, not a timer. The timer runs only while something is
 * in flight, so an idle worker sleeps.
 */
export class InFlight {
  /** Newest first. */
  #first: InFlightEntry | null = null;

  size = 0;
  /** The time for what is in flight has ended: gRPC calls end with a status, everything else with its connection. */
  isStopping = false;
  #timer: Timer | null = null;
  #now = performance.now();
  #emptyTicks = 0;
  #onEmpty: (() => void) | null = null;

  /** Milliseconds since the worker started, exact to a tick; for timeouts. */
  readonly now = (): number => {
    // While the timer is stopped `#now` is stale, and a timeout from there would expire at once.
    if (this.#timer === null) this.#now = performance.now();
    return this.#now;
  };

  /** Returns `now()`. */
  add(entry: InFlightEntry): number {
    if (entry.isListed) return this.#now;
    if (this.#timer === null) this.#startTimer();
    entry.isListed = true;
    entry.next = this.#first;
    if (this.#first !== null) this.#first.previous = entry;
    this.#first = entry;
    this.size++;
    return this.#now;
  }

  remove(entry: InFlightEntry): void {
    if (!entry.isListed) return;
    entry.isListed = false;
    if (entry.previous === null) this.#first = entry.next;
    else entry.previous.next = entry.next;
    if (entry.next !== null) entry.next.previous = entry.previous;
    // A removed entry that points at live ones would promote them to the garbage collector's old generation.
    entry.previous = null;
    entry.next = null;
    this.size--;
    if (this.size === 0) this.#onEmpty?.();
  }

  /** Resolves with true when nothing is in flight, with false after `timeoutMs`. */
  drained(timeoutMs: number): Promise<boolean> {
    if (this.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** Ends gRPC calls. */
  stop(): void {
    this.isStopping = true;
    this.#tick();
  }

  #startTimer(): void {
    this.#now = performance.now();
    this.#emptyTicks = 0;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    const now = performance.now();
    this.#now = now;
    for (const entry of this.#entries()) if (entry.isListed) entry.tick(now);
    // Stops after ten empty ticks: starting the timer for every single request would cost more.
    if (this.size > 0) this.#emptyTicks = 0;
    else if (++this.#emptyTicks > 10 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }

  /** A copy, because entries remove themselves during the walk. */
  #entries(): InFlightEntry[] {
    const entries: InFlightEntry[] = [];
    for (let entry = this.#first; entry !== null; entry = entry.next) entries.push(entry);
    return entries;
  }
}
