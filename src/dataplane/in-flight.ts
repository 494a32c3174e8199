// The requests that a worker is serving, and the one clock that watches all of them; knows no HTTP.

/** Something that is looked at about ten times a second while it lasts. */
export abstract class Watched {
  /** Neighbours in the list, set by InFlight alone. */
  previous: Watched | null = null;
  next: Watched | null = null;
  isWatched = false;

  abstract tick(now: number): void;
}

class Sentinel extends Watched {
  tick(): void {}
}

const TICK_MS = 100;

/**
 * A time-out costs a request nothing but a number to compare: no timer of its own. The clock runs only while something is
 * in flight, so an idle worker sleeps. A linked list, because a Set's add and delete cost 2 microseconds a request.
 */
export class InFlight {
  readonly #first: Watched = new Sentinel();
  #size = 0;
  #timer: Timer | null = null;
  #now = performance.now();
  #emptyTicks = 0;
  #onEmpty: (() => void) | null = null;

  get size(): number {
    return this.#size;
  }

  /** Milliseconds since the worker started, exact to a tick; use it for time-outs. */
  readonly now = (): number => this.#now;

  add(item: Watched): void {
    if (this.#timer === null) this.#startClock();
    const after = this.#first.next;
    item.previous = this.#first;
    item.next = after;
    if (after !== null) after.previous = item;
    this.#first.next = item;
    item.isWatched = true;
    this.#size++;
  }

  remove(item: Watched): void {
    if (!item.isWatched) return;
    item.isWatched = false;
    if (item.previous !== null) item.previous.next = item.next;
    if (item.next !== null) item.next.previous = item.previous;
    // A dead request that points at living ones would carry them into the old generation of the garbage collector.
    item.previous = null;
    item.next = null;
    if (--this.#size === 0) this.#onEmpty?.();
  }

  /** Resolves when nothing is in flight, true, or after `timeoutMs`, false. */
  drained(timeoutMs: number): Promise<boolean> {
    if (this.#size === 0) return Promise.resolve(true);
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
    const items: Watched[] = [];
    for (let item = this.#first.next; item !== null; item = item.next) items.push(item);
    for (const item of items) if (item.isWatched) item.tick(now);
    // Ten quiet ticks before the clock stops: starting it for each of a few requests a second would cost more.
    if (this.#size > 0) this.#emptyTicks = 0;
    else if (++this.#emptyTicks > 10 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}
