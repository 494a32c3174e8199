// A reserve of open file descriptors, to be released when clients have used up all others; knows no listener.
import { closeSync, openSync, readdirSync } from "node:fs";

/** What the pressure watch needs of the system. */
export interface Descriptors {
  /** Opens a file that costs nothing; throws at the limit of open files. */
  open(): number;
  close(descriptor: number): void;
  /** Number of open descriptors; throws like `open`. */
  count(): number;
}

const systemDescriptors: Descriptors = {
  open: () => openSync("/dev/null", "r"),
  close: closeSync,
  // One of them is the directory being read.
  count: () => readdirSync("/proc/self/fd").length - 1,
};

const [FEWEST, MOST] = [8, 32] as const;
/** Fraction of the limit below which the shortage is over. */
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

  /** Fills the reserve; false, and the reserve is empty, when that is not possible. */
  take(): boolean {
    try {
      while (this.#held.length < this.size) this.#held.push(this.#system.open());
      return true;
    } catch {
      this.release();
      return false;
    }
  }

  /** Frees the reserve for other files and sockets. */
  release(): void {
    for (const descriptor of this.#held) this.#system.close(descriptor);
    this.#held = [];
  }

  /**
   * Whether the limit is almost reached. The system returns the lowest free number (POSIX), so that one open is enough:
   * counting thousands takes milliseconds.
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

  /** Whether the shortage is over. */
  isEnough(): boolean {
    try {
      return this.#system.count() < this.limit * ENOUGH - this.size;
    } catch {
      return false;
    }
  }
}
