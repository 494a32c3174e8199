// The requests that a worker is serving, and the one clock that watches all of them; knows no HTTP.

/**
 * Something in flight; `tick` runs about ten times a second while it lasts. It carries its own place in the list: a Set would
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
 * A time-out costs a request nothing but a number to compare: no timer of its own. The clock runs only while something is
 * in flight, so an idle worker sleeps.
 */
export class InFlight {
  /** Newest first. */
  #first: InFlightEntry | null = null;
  /** How many there are. */
  size = 0;
  #timer: Timer | null = null;
  #now = performance.now();
  #emptyTicks = 0;
  #onEmpty: (() => void) | null = null;

  /** Milliseconds since the worker started, exact to a tick; use it for time-outs. */
  readonly now = (): number => {
    // A clock that has stopped says when the worker was last busy: a time-out from there would be over at once.
    if (this.#timer === null) this.#now = performance.now();
    return this.#now;
  };

  add(entry: InFlightEntry): void {
    if (entry.isListed) return;
    if (this.#timer === null) this.#startClock();
    entry.isListed = true;
    entry.next = this.#first;
    if (this.#first !== null) this.#first.previous = entry;
    this.#first = entry;
    this.size++;
  }

  remove(entry: InFlightEntry): void {
    if (!entry.isListed) return;
    entry.isListed = false;
    if (entry.previous === null) this.#first = entry.next;
    else entry.previous.next = entry.next;
    if (entry.next !== null) entry.next.previous = entry.previous;
    // One that is gone and still points at living ones would carry them into the old generation of the garbage collector.
    entry.previous = null;
    entry.next = null;
    this.size--;
    if (this.size === 0) this.#onEmpty?.();
  }

  /** Resolves when nothing is in flight, true, or after `timeoutMs`, false. */
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

  #startClock(): void {
    this.#now = performance.now();
    this.#emptyTicks = 0;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    const now = performance.now();
    this.#now = now;
    for (const entry of this.#entries()) if (entry.isListed) entry.tick(now);
    // Ten quiet ticks before the clock stops: starting it for each of a few requests a second would cost more.
    if (this.size > 0) this.#emptyTicks = 0;
    else if (++this.#emptyTicks > 10 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }

  /** Those of now: while they are walked, some end. */
  #entries(): InFlightEntry[] {
    const entries: InFlightEntry[] = [];
    for (let entry = this.#first; entry !== null; entry = entry.next) entries.push(entry);
    return entries;
  }
}
