// One series of looks for all that wait for something to change; knows not what is looked at.

/** Pause after the first look; doubles up to the last. Milliseconds. */
const PAUSE_MS = 2;
const MAX_PAUSE_MS = 50;

export class SharedLook<T> {
  readonly #look: () => Promise<T>;
  readonly #waiting: PromiseWithResolvers<T>[] = [];
  #pause = PAUSE_MS;
  #isLooking = false;
  /** Ends the pause. */
  #wake: (() => void) | null = null;

  constructor(look: () => Promise<T>) {
    this.#look = look;
  }

  /** The result of a look at once; a thousand callers cost as much as one. */
  first(): Promise<T> {
    this.#pause = PAUSE_MS;
    this.#wake?.();
    return this.next();
  }

  /** The result of the next look, after a pause. */
  next(): Promise<T> {
    const waiting = Promise.withResolvers<T>();
    this.#waiting.push(waiting);
    if (!this.#isLooking) void this.#run();
    return waiting.promise;
  }

  async #run(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting.splice(0);
      try {
        const seen = await this.#look();
        for (const { resolve } of waiting) resolve(seen);
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
      // Those that go on to wait have said so by then.
      await this.#rest();
    }
    this.#isLooking = false;
  }

  async #rest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#pause);
    this.#wake = resolve;
    this.#pause = Math.min(this.#pause * 2, MAX_PAUSE_MS);
    await promise;
    clearTimeout(timer);
    this.#wake = null;
  }
}
