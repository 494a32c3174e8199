// Runs work one after the other, in the order of its requests, and can be paused; knows nothing of the work.
import { ApiError } from "../model/error.ts";

/** Retry-After while work is refused. */
const RETRY_SECONDS = "5";

export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  /** Why work is refused; null: it is not. */
  #pausedFor: string | null = null;

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    // One that failed must not block the next ones.
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Rejects with a 409 when its turn comes during a pause. */
  runOpen<T>(work: () => Promise<T>): Promise<T> {
    return this.run(() => {
      this.requireOpen();
      return work();
    });
  }

  /** From now on `requireOpen` refuses with `reason`, also the waiting work; resolves when what runs has ended. */
  async pause(reason: string): Promise<void> {
    this.#pausedFor = reason;
    await this.#last;
  }

  /** Ends `pause`. */
  resume(): void {
    this.#pausedFor = null;
  }

  /** Delays work until `ready` resolves. */
  holdUntil(ready: Promise<void>): void {
    this.#last = this.#last.then(() => ready);
  }

  requireOpen(): void {
    if (this.#pausedFor !== null)
      throw new ApiError(409, this.#pausedFor, { headers: { "retry-after": RETRY_SECONDS } });
  }
}
