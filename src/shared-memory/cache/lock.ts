// The lock of a cache's memory, which carries the thread that holds it; knows not what it protects.
import { words } from "./memory.ts";

/** Tries before a thread sleeps; work under the lock takes microseconds. */
const SPINS = 100;
const SLEEP_MS = 1;
/** As holder: the memory is being repaired, which takes long, or no thread may change it any more. */
const REPAIRING = -1;

/** All of these may be called by any thread; none waits for longer than it says. */
export class CacheLock {
  readonly #words: Int32Array;
  readonly #holder: number;

  /** `holder`: from 1. */
  constructor(memory: Int32Array, holder: number) {
    this.#words = memory;
    this.#holder = holder;
  }

  /** False: not locked, after at most about `patience` ms. A holder that was interrupted goes on while this thread sleeps. */
  acquire(patience: number): boolean {
    for (let spin = 0; spin < SPINS; spin++) {
      const held = Atomics.compareExchange(this.#words, words.lock, 0, this.#holder);
      if (held === 0) return true;
      if (held === REPAIRING) return false;
      Atomics.pause();
    }
    return this.#wait(patience);
  }

  #wait(patience: number): boolean {
    const memory = this.#words;
    Atomics.add(memory, words.waiting, 1);
    let isLocked = false;
    const until = performance.now() + patience;
    while (!isLocked && performance.now() < until) {
      const held = Atomics.compareExchange(memory, words.lock, 0, this.#holder);
      isLocked = held === 0;
      if (held === REPAIRING) break;
      if (!isLocked) Atomics.wait(memory, words.lock, held, SLEEP_MS);
    }
    Atomics.sub(memory, words.waiting, 1);
    return isLocked;
  }

  release(): void {
    Atomics.store(this.#words, words.lock, 0);
    if (Atomics.load(this.#words, words.waiting) > 0) Atomics.notify(this.#words, words.lock, 1);
  }

  /** Takes the free lock for ever: no thread waits for it. False: it is not free. */
  retire(): boolean {
    return Atomics.compareExchange(this.#words, words.lock, 0, REPAIRING) === 0;
  }

  /** Takes the lock from a thread that has ended, for a repair; false: it did not hold it. */
  seize(dead: number): boolean {
    return Atomics.compareExchange(this.#words, words.lock, dead, REPAIRING) === dead;
  }
}
