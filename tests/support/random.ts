// Numbers that look random and repeat with their seed, so that a run that failed can be run again.
import { reportSeed } from "./failure-report.ts";

const chosen = Math.floor(Math.random() * 2 ** 31);

/** The seed of this run, which the report of a failed test prints: $SLUICE_TEST_SEED, else the default or a new one. */
export function seedOfRun(defaultSeed = chosen): number {
  const seed = Number(process.env["SLUICE_TEST_SEED"] ?? defaultSeed);
  reportSeed(seed);
  return seed;
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
