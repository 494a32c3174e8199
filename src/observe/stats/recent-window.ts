// Counters of the last minute, in slots of ten seconds; knows no object and no database.
import { type Counted, CountedMap } from "./traffic-deltas.ts";

/** Milliseconds. */
export const SLOT_MS = 10_000;
const WINDOW_MS = 60_000;

interface Slot {
  readonly from: number;
  to: number;
  readonly counted: CountedMap;
}

export class RecentWindow {
  #slots: Slot[] = [];

  /** Adds counters of an interval, in milliseconds since 1970. */
  add(counted: readonly Counted[], from: number, to: number): void {
    // After the clock was set, the age of the slots is unknown.
    if (to < from || to - from > WINDOW_MS) this.#slots = [];
    const start = Math.min(from, to);
    const last = this.#slots.at(-1);
    const slot = last !== undefined && to - last.from <= SLOT_MS ? last : null;
    if (slot === null) {
      const made = { from: Math.max(start, to - WINDOW_MS), to, counted: new CountedMap() };
      made.counted.addAll(counted);
      this.#slots.push(made);
    } else {
      slot.to = to;
      slot.counted.addAll(counted);
    }
    this.#slots = this.#slots.filter((each) => each.to > to - WINDOW_MS || each.to === to);
  }

  /** The sum, and its seconds, at least 1. */
  read(): { readonly seconds: number; readonly counted: CountedMap } {
    const counted = new CountedMap();
    for (const slot of this.#slots) counted.addAll(slot.counted.all);
    const from = this.#slots[0]?.from ?? 0;
    const to = this.#slots.at(-1)?.to ?? 0;
    return { seconds: Math.max(1, (to - from) / 1000), counted };
  }
}
