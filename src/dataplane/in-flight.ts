// The requests that a worker is serving, and the one clock that watches all of them; knows no HTTP.
import { LinkedList, type ListNode } from "./linked-list.ts";

/** Something that is looked at about ten times a second while it lasts. */
export interface Watched {
  tick(now: number): void;
}

const TICK_MS = 100;

/**
 * A time-out costs a request nothing but a number to compare: no timer of its own. The clock runs only while something is
 * in flight, so an idle worker sleeps.
 */
export class InFlight {
  readonly #watched = new LinkedList<Watched>();
  #timer: Timer | null = null;
  #now = performance.now();
  #emptyTicks = 0;
  #onEmpty: (() => void) | null = null;

  get size(): number {
    return this.#watched.size;
  }

  /** Milliseconds since the worker started, exact to a tick; use it for time-outs. */
  readonly now = (): number => {
    // A clock that has stopped says when the worker was last busy: a time-out from there would be over at once.
    if (this.#timer === null) this.#now = performance.now();
    return this.#now;
  };

  add(place: ListNode<Watched>): void {
    if (this.#timer === null) this.#startClock();
    this.#watched.add(place);
  }

  remove(place: ListNode<Watched>): void {
    if (!place.isListed) return;
    this.#watched.remove(place);
    if (this.#watched.size === 0) this.#onEmpty?.();
  }

  /** Resolves when nothing is in flight, true, or after `timeoutMs`, false. */
  drained(timeoutMs: number): Promise<boolean> {
    if (this.#watched.size === 0) return Promise.resolve(true);
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
    for (const node of this.#watched.nodes()) if (node.isListed) node.item.tick(now);
    // Ten quiet ticks before the clock stops: starting it for each of a few requests a second would cost more.
    if (this.#watched.size > 0) this.#emptyTicks = 0;
    else if (++this.#emptyTicks > 10 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}
