// Places of one instance in one worker, and those that wait for one; knows no request.
import type { Counters } from "../../pdk/kit.ts";

export interface PlaceOptions {
  readonly max: number;
  /** Of one key, over all workers. */
  readonly queue: number;
  readonly queue_timeout: number;
}

/** How a wait has ended; only `entered` has a place, which it must give back. */
export type WaitEnd = "entered" | "full" | "late" | "gone";

interface Waiter {
  readonly end: (end: WaitEnd) => void;
}

/** How often those that wait look for places that other workers have left. */
const LOOK_MS = 20;

export class Places {
  readonly #options: PlaceOptions;
  readonly #counters: Counters;
  /** First come first served, of each key. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #looking: Timer | null = null;

  constructor(options: PlaceOptions, counters: Counters) {
    this.#options = options;
    this.#counters = counters;
  }

  /** At once or not at all. Nobody passes those that wait in this worker. */
  enter(key: string): boolean {
    return !this.#waiting.has(key) && this.#counters.enter(key, this.#options.max);
  }

  leave(key: string): void {
    this.#counters.leave(key);
    this.#serve(key);
  }

  /** Waits for a place until the signal, or the end of the time. */
  wait(key: string, signal: AbortSignal): Promise<WaitEnd> {
    if (signal.aborted) return Promise.resolve("gone");
    if (!this.#counters.enter(queueOf(key), this.#options.queue)) return Promise.resolve("full");
    return new Promise((resolve) => {
      const leave = () => waiter.end("gone");
      const waiter: Waiter = {
        end: (end) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", leave);
          this.#forget(key, waiter);
          resolve(end);
        },
      };
      const timer = setTimeout(() => waiter.end("late"), this.#options.queue_timeout);
      signal.addEventListener("abort", leave);
      const others = this.#waiting.get(key);
      if (others === undefined) this.#waiting.set(key, new Set([waiter]));
      else others.add(waiter);
      this.#looking ??= setInterval(() => this.#look(), LOOK_MS);
    });
  }

  #forget(key: string, waiter: Waiter): void {
    const waiting = this.#waiting.get(key);
    if (waiting?.delete(waiter) !== true) return;
    this.#counters.leave(queueOf(key));
    if (waiting.size === 0) this.#waiting.delete(key);
    if (this.#waiting.size > 0 || this.#looking === null) return;
    clearInterval(this.#looking);
    this.#looking = null;
  }

  #look(): void {
    for (const key of [...this.#waiting.keys()]) this.#serve(key);
  }

  /** Gives what is free to those that have waited longest. */
  #serve(key: string): void {
    for (const waiter of this.#waiting.get(key) ?? []) {
      if (!this.#counters.enter(key, this.#options.max)) return;
      waiter.end("entered");
    }
  }
}

/** No key begins with this. */
const queueOf = (key: string) => `\nqueue ${key}`;
