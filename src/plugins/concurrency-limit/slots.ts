// The concurrency slots of one instance in one worker, and the queue for them; knows no request.
import type { Counters } from "../../pdk/kit.ts";

export interface SlotOptions {
  readonly max: number;
  /** Of one key, over all workers. */
  readonly queue: number;
  readonly queue_timeout: number;
}

/** The end of a wait; only `entered` has a slot, which must be released. */
export type WaitEnd = "entered" | "full" | "late" | "gone";

interface Waiter {
  readonly end: (end: WaitEnd) => void;
}

/** How often the queue checks for slots that other workers have released. */
const LOOK_MS = 20;

export class ConcurrencySlots {
  readonly #options: SlotOptions;
  readonly #counters: Counters;
  /** A FIFO queue for each key. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #looking: Timer | null = null;

  constructor(options: SlotOptions, counters: Counters) {
    this.#options = options;
    this.#counters = counters;
  }

  /** Takes a slot without waiting. False when there is none, or when others wait in this worker. */
  enter(key: string): boolean {
    return !this.#waiting.has(key) && this.#counters.enter(key, this.#options.max);
  }

  leave(key: string): void {
    this.#counters.leave(key);
    this.#serve(key);
  }

  /** Waits for a slot until the signal or the timeout. */
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

  /** Gives free slots to those that have waited longest. */
  #serve(key: string): void {
    for (const waiter of this.#waiting.get(key) ?? []) {
      if (!this.#counters.enter(key, this.#options.max)) return;
      waiter.end("entered");
    }
  }
}

/** Keys of requests cannot begin with this. */
const queueOf = (key: string) => `\nqueue ${key}`;
