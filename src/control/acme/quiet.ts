// Keeps two things apart: checks of authorities at https listeners, and changes that bind those anew; knows neither of them.

/** Some authorities take their time: nobody waits for them for ever. */
const LONGEST_WAIT_MS = 20_000;

/** A connection that is being made while a listener is bound anew may be reset, and the authority would count that as ours. */
export class Quiet {
  #checks = 0;
  #changes = 0;
  #wakes: (() => void)[] = [];

  /** Resolves when no change is going on or waits; the function says that the check is over. */
  async beginCheck(): Promise<() => void> {
    await this.#until(() => this.#changes === 0);
    this.#checks++;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#checks--;
      this.#wake();
    };
  }

  /** Runs it when no check is going on; none begins before it is done. */
  async change<T>(run: () => Promise<T>): Promise<T> {
    this.#changes++;
    try {
      await this.#until(() => this.#checks === 0);
      return await run();
    } finally {
      this.#changes--;
      this.#wake();
    }
  }

  async #until(isTrue: () => boolean): Promise<void> {
    const end = performance.now() + LONGEST_WAIT_MS;
    while (!isTrue() && performance.now() < end) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, end - performance.now());
      timer.unref();
      this.#wakes.push(resolve);
      await promise;
      clearTimeout(timer);
    }
  }

  #wake(): void {
    const wakes = this.#wakes;
    this.#wakes = [];
    for (const wake of wakes) wake();
  }
}
