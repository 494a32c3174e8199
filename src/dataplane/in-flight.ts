// The requests that a worker is serving, and the one clock that watches all of them; knows no HTTP.
import { type Linked, LinkedList } from "./linked-list.ts";

/** Something in flight; `tick` runs about ten times a second while it lasts. */
export interface InFlightEntry extends Linked<InFlightEntry> {
  tick(now: number): void;
}

const TICK_MS = 100;

/**
 * A time-out costs a request nothing but a number to compare: no timer of its own. The clock runs only while something is
 * in flight, so an idle worker sleeps.
 */
export class InFlight {
  readonly #entries = new LinkedList<InFlightEntry>();
  #timer: Timer | null = null;
  #now = performance.now();
  #emptyTicks = 0;
  #onEmpty: (() => void) | null = null;

  get size(): number {
    return this.#entries.size;
  }

  /** Milliseconds since the worker started, exact to a tick; use it for time-outs. */
  readonly now = (): number => {
    // A clock that has stopped says when the worker was last busy: a time-out from there would be over at once.
    if (this.#timer === null) this.#now = performance.now();
    return this.#now;
  };

  add(entry: InFlightEntry): void {
    if (this.#timer === null) this.#startClock();
    this.#entries.add(entry);
  }

  remove(entry: InFlightEntry): void {
    if (!entry.isListed) return;
    this.#entries.remove(entry);
    if (this.#entries.size === 0) this.#onEmpty?.();
  }

  /** Resolves when nothing is in flight, true, or after `timeoutMs`, false. */
  drained(timeoutMs: number): Promise<boolean> {
    if (this.#entries.size === 0) return Promise.resolve(true);
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
    for (const entry of this.#entries.nodes()) if (entry.isListed) entry.tick(now);
    // Ten quiet ticks before the clock stops: starting it for each of a few requests a second would cost more.
    if (this.#entries.size > 0) this.#emptyTicks = 0;
    else if (++this.#emptyTicks > 10 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}
