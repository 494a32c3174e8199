// A gate between shared and exclusive work: CA validations at https listeners, and changes that rebind those; knows neither.

/** Limit of a wait, because some CAs are slow. */
const LONGEST_WAIT_MS = 20_000;

/** Rebinding a listener may reset a connection in its handshake, which a CA would count as a failed validation. */
export class SharedExclusiveGate {
  #checks = 0;
  #changes = 0;
  #wakes: (() => void)[] = [];

  /** Resolves when no change runs or waits; the function ends the check. */
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

  /** Runs it when no check runs; no check starts before its end. */
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
