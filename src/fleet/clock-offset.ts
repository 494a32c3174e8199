// How far the clock of this node is ahead of the database's, from the heartbeats; knows no database.
import type { Log } from "../log.ts";

/** Beyond it, second factors, tokens and time windows differ between nodes. */
const WARNED_MS = 1000;

export class ClockOffset {
  readonly #log: Log;
  #ms: number | null = null;
  #isWarned = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Null: not measured yet. */
  get ms(): number | null {
    return this.#ms;
  }

  /** `sentAt` and `receivedAt` by the clock of this node, `answeredAt` by the database's. */
  measure(sentAt: number, answeredAt: number, receivedAt: number): void {
    const ms = Math.round((sentAt + receivedAt) / 2 - answeredAt);
    this.#ms = ms;
    // A slow answer says little: the error is at most half of the time it took.
    const isOff = Math.abs(ms) - (receivedAt - sentAt) / 2 > WARNED_MS;
    if (isOff && !this.#isWarned)
      this.#log.warn(
        "the clock of this node differs from the database's: codes of second factors, tokens and time windows may be judged differently by other nodes; check NTP",
        { offset_ms: ms },
      );
    this.#isWarned = isOff;
  }
}
