// Tells of other processes with a copy of this node's data directory; asks nothing.
import type { Log } from "../log.ts";
import { supersededBy } from "./source.ts";
import type { OtherProcess } from "./speaker.ts";

export class Rivalry {
  readonly #log: Log;
  #other: OtherProcess | null = null;

  constructor(log: Log) {
    this.#log = log;
  }

  /** What the last heartbeat found. */
  observe(other: OtherProcess | null): void {
    const before = this.#other;
    this.#other = other;
    const { address, speaks = false } = other ?? {};
    if (before?.speaks === true && !speaks)
      this.#log.info("this process speaks for its node again");
    if (other === null || (before?.address === address && before?.speaks === speaks)) return;
    if (speaks) this.#log.error(supersededBy(other.address));
    else
      this.#log.warn(
        "another process with a copy of this node's data directory wants to speak for it and is refused: give that machine an empty data directory",
        { address },
      );
  }

  /** Why this process cannot make changes; null: it speaks for its node. */
  get error(): string | null {
    return this.#other?.speaks === true ? supersededBy(this.#other.address) : null;
  }

  /** Without addresses; null: no other process is known. */
  get warning(): string | null {
    if (this.#other === null) return null;
    return this.#other.speaks
      ? "Another process with a copy of this node's data directory speaks for it in the fleet: this one changes nothing and is not counted. The log names its address."
      : "Another process with a copy of this node's data directory wanted to speak for it in the last minutes. The log names its address.";
  }
}
