// Lets a few pieces of heavy work run at once, a few more wait, and refuses the rest; knows nothing of the work.
import { ApiError } from "../../model/error.ts";

export interface QueueLimits {
  readonly running: number;
  readonly waiting: number;
}

/** Checking a password takes 19 MiB and a core for some 30 ms. */
const LIMITS: QueueLimits = { running: 4, waiting: 64 };

export class VerificationQueue {
  readonly #limits: QueueLimits;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limits: QueueLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Runs `work` when it is its turn; throws a 429 when too much is waiting already. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limits.running) await this.#turn();
    else this.#running++;
    try {
      return await work();
    } finally {
      // The place is handed on without becoming free, so that nobody who comes in between takes it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#limits.waiting)
      throw new ApiError(429, "too many people sign in at the same time; try again", {
        headers: { "retry-after": "1" },
      });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    return promise;
  }
}
