// Numbers that look random and repeat with their seed, so that a run that failed can be run again.

/** The seed of this run: $SLUICE_TEST_SEED, else a new one. Print it with what failed. */
export function seedOfRun(): number {
  return Number(process.env["SLUICE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
}

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0, below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to below `to`. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from));
  }

  /** Throws on an empty list. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("nothing to pick from");
    return items[this.between(0, items.length)] as T;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }
}
