// Numbers by key for the instances of plugins, exact over all workers; knows no plugin and no HTTP.
import type { Counters } from "../pdk/kit.ts";
import { CounterSlots, KIND_MASK, kinds, marks } from "./counter-slots.ts";
import { restoreSnapshot, takeSnapshot } from "./counter-snapshot.ts";
import { InstanceCounters } from "./instance-counters.ts";

/** Keys that there is room for unless somebody says otherwise. */
const DEFAULT_KEYS = 131_072;

export interface CounterTableOptions {
  /** Milliseconds since 1970. All threads must agree on it. */
  readonly now?: () => number;
}

/**
 * A hash table in memory that all threads share: 48 bytes for each key it has room for, and 3 for each worker, which take up
 * memory only once they were used. When a part of it is full, a new key takes the place of one that expired or was idle
 * longest; keys that somebody has entered stay.
 */
export class CounterTable {
  readonly buffer: SharedArrayBuffer;
  readonly #slots: CounterSlots;

  constructor(buffer: SharedArrayBuffer, { now = Date.now }: CounterTableOptions = {}) {
    this.buffer = buffer;
    this.#slots = new CounterSlots(buffer, now);
  }

  static create(
    { keys = DEFAULT_KEYS, workers }: { readonly keys?: number; readonly workers: number },
    options: CounterTableOptions = {},
  ): CounterTable {
    const { buffer } = CounterSlots.create({ keys, workers }, options.now ?? Date.now);
    return new CounterTable(buffer, options);
  }

  /**
   * The counters of an instance in one worker, from 0. Keys of other instances are others. `persist`: windows and buckets are
   * part of `snapshot`.
   */
  forInstance(worker: number, instanceId: string, { persist = false } = {}): Counters {
    return new InstanceCounters(this.#slots, { worker, instanceId, persist });
  }

  /** Takes off what a worker that ended has entered. */
  forgetWorker(worker: number): void {
    const slots = this.#slots;
    // At most starts of a worker.
    if (Atomics.load(slots.marks, marks.inside) === 0) return;
    const first = worker * slots.count;
    for (let slot = 0; slot < slots.count; slot++)
      if (slots.shares[first + slot] !== 0) this.#forgetShare(worker, slot);
  }

  #forgetShare(worker: number, slot: number): void {
    const slots = this.#slots;
    const group = slots.groupOfSlot(slot);
    const token = slots.lock(group, slots.now());
    slots.shares[worker * slots.count + slot] = 0;
    // Something else by now, if the worker died just before it was counted.
    if ((slots.flags(slot) & KIND_MASK) === kinds.inside) {
      // Counted anew: the worker may have died between two numbers.
      let count = 0;
      for (let other = 0; other < slots.workers; other++)
        count += slots.shares[other * slots.count + slot] ?? 0;
      slots.setFirst(slot, count);
      if (count === 0) slots.setExpires(slot, slots.tick(slots.now()));
    }
    slots.unlock(group, token);
  }

  /** The windows and buckets of the instances that asked to keep them; null when none did. */
  snapshot(): Uint8Array | null {
    return takeSnapshot(this.#slots);
  }

  /** Puts back what `snapshot` gave, before any worker uses the table; returns how many keys. */
  restore(bytes: Uint8Array): number {
    return restoreSnapshot(this.#slots, bytes);
  }
}
