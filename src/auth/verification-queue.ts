// Bounds concurrent heavy work: runs a few, queues a few more, rejects the rest; knows nothing of the work.
import { ApiError } from "../model/error.ts";

export interface QueueLimits {
  readonly running: number;
  readonly waiting: number;
}

/** Checking a password needs 19 MiB and a core for some 30 ms. */
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
      // Passes the slot on directly, so that a newcomer cannot take it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#limits.waiting)
      throw new ApiError(429, "too many concurrent sign-ins; try again", {
        headers: { "retry-after": "1" },
      });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    return promise;
  }
}
