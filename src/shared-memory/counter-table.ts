// Counters by key for plugin instances, exact over all workers; knows no plugin and no HTTP.
import type { Counters } from "../pdk/kit.ts";
import { CounterSlots, KIND_MASK, kinds, marks } from "./counter-slots.ts";
import { restoreSnapshot, takeSnapshot } from "./counter-snapshot.ts";
import { InstanceCounters } from "./instance-counters.ts";
import type { Locks } from "./locks.ts";

/** Default capacity. */
const DEFAULT_KEYS = 131_072;

export interface CounterTableOptions {
  /** Milliseconds since 1970. All threads must agree on it. */
  readonly now?: () => number;
  /** As in `StartCommand`. Default: the main thread. */
  readonly thread?: number;
}

/**
 * A hash table in shared memory: 48 bytes for each key of its capacity, and 3 for each worker, which take up
 * memory only after use. When a group is full, a new key replaces one that expired or was idle
 * longest, except keys in use by `enter`.
 */
export class CounterTable {
  readonly buffer: SharedArrayBuffer;
  readonly #slots: CounterSlots;

  constructor(buffer: SharedArrayBuffer, { now = Date.now, thread }: CounterTableOptions = {}) {
    this.buffer = buffer;
    this.#slots = new CounterSlots(buffer, now, thread);
  }

  static create(
    { keys = DEFAULT_KEYS, workers }: { readonly keys?: number; readonly workers: number },
    options: CounterTableOptions = {},
  ): CounterTable {
    const { buffer } = CounterSlots.create({ keys, workers }, options.now ?? Date.now);
    return new CounterTable(buffer, options);
  }

  get locks(): Locks {
    return this.#slots.locks;
  }

  /**
   * The counters of an instance in one worker, from 0. Instances have separate keys. `persist`: windows and buckets are
   * part of `snapshot`.
   */
  forInstance(worker: number, instanceId: string, { persist = false } = {}): Counters {
    return new InstanceCounters(this.#slots, { worker, instanceId, persist });
  }

  /** Subtracts what a worker that has ended had entered. */
  forgetWorker(worker: number): void {
    const slots = this.#slots;
    // The usual case.
    if (Atomics.load(slots.marks, marks.inside) === 0) return;
    const first = worker * slots.count;
    for (let slot = 0; slot < slots.count; slot++)
      if (slots.shares[first + slot] !== 0) this.#forgetShare(worker, slot);
  }

  #forgetShare(worker: number, slot: number): void {
    const slots = this.#slots;
    const group = slots.groupOfSlot(slot);
    slots.locks.holding(group, () => {
      slots.shares[worker * slots.count + slot] = 0;
      // The slot may have another key, if the worker died just before it was counted.
      if ((slots.flags(slot) & KIND_MASK) === kinds.inside) {
        // Recounted, because the worker may have died between two writes.
        let count = 0;
        for (let other = 0; other < slots.workers; other++)
          count += slots.shares[other * slots.count + slot] ?? 0;
        slots.setFirst(slot, count);
        if (count === 0) slots.setExpires(slot, slots.tick(slots.now()));
      }
    });
  }

  /** The persisted windows and buckets; null when no instance persists counters. */
  snapshot(): Uint8Array | null {
    return takeSnapshot(this.#slots);
  }

  /** Restores a snapshot before any worker uses the table; returns the number of keys. */
  restore(bytes: Uint8Array): number {
    return restoreSnapshot(this.#slots, bytes);
  }
}
