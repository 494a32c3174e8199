// Files kept open for nothing, so that some are left when clients have taken all others; knows no listener.
import { closeSync, openSync, readdirSync } from "node:fs";

/** What the watch needs of the system. */
export interface Descriptors {
  /** Opens something that costs nothing; throws when nothing more can be opened. */
  open(): number;
  close(descriptor: number): void;
  /** How many are open; throws like `open`. */
  count(): number;
}

export const systemDescriptors: Descriptors = {
  open: () => openSync("/dev/null", "r"),
  close: closeSync,
  // One of them is the folder that is being read.
  count: () => readdirSync("/proc/self/fd").length - 1,
};

const [FEWEST, MOST] = [8, 32] as const;
/** Part of the limit below which there are enough again. */
const ENOUGH = 0.8;

/** Holds a few descriptors until `release`. */
export class DescriptorReserve {
  readonly size: number;
  readonly limit: number;
  readonly #system: Descriptors;
  #held: number[] = [];

  constructor(limit: number, system: Descriptors = systemDescriptors) {
    this.limit = limit;
    this.size = Math.min(MOST, Math.max(FEWEST, Math.floor(limit / 8)));
    this.#system = system;
    this.take();
  }

  get isHeld(): boolean {
    return this.#held.length > 0;
  }

  /** Opens what is missing of the reserve; false, and nothing is held, when that is not possible. */
  take(): boolean {
    try {
      while (this.#held.length < this.size) this.#held.push(this.#system.open());
      return true;
    } catch {
      this.release();
      return false;
    }
  }

  /** Others may open as many. */
  release(): void {
    for (const descriptor of this.#held) this.#system.close(descriptor);
    this.#held = [];
  }

  /**
   * Whether hardly any is left. The system gives the lowest number that is free, so that one number tells enough: counting
   * takes milliseconds when there are thousands.
   */
  isShort(): boolean {
    try {
      const next = this.#system.open();
      this.#system.close(next);
      return next >= this.limit - this.size;
    } catch {
      return true;
    }
  }

  /** Whether there are many again. */
  isEnough(): boolean {
    try {
      return this.#system.count() < this.limit * ENOUGH - this.size;
    } catch {
      return false;
    }
  }
}
