// SIEVE cache eviction (Zhang et al., NSDI 2024); knows nothing of the entries.

/** An entry, linked in insertion order. */
export class CacheSlot<T> {
  readonly item: T;
  /** Used since the hand last passed. */
  isVisited = false;
  older: CacheSlot<T> | null = null;
  newer: CacheSlot<T> | null = null;

  constructor(item: T) {
    this.item = item;
  }
}

/**
 * A hand moves from the oldest to the newest entry: visited entries stay in place, the first other one is evicted. Entries used
 * only once therefore displace only each other, and a hit costs no more than setting a bit.
 */
export class Sieve<T> {
  #newest: CacheSlot<T> | null = null;
  #oldest: CacheSlot<T> | null = null;
  #hand: CacheSlot<T> | null = null;

  add(slot: CacheSlot<T>): void {
    slot.older = this.#newest;
    slot.newer = null;
    if (this.#newest === null) this.#oldest = slot;
    else this.#newest.newer = slot;
    this.#newest = slot;
  }

  remove(slot: CacheSlot<T>): void {
    if (this.#hand === slot) this.#hand = slot.newer;
    if (slot.older === null) this.#oldest = slot.newer;
    else slot.older.newer = slot.newer;
    if (slot.newer === null) this.#newest = slot.older;
    else slot.newer.older = slot.older;
    slot.older = null;
    slot.newer = null;
  }

  /** The entry to evict, to be passed to `remove`; null: empty. */
  next(): CacheSlot<T> | null {
    let slot = this.#hand ?? this.#oldest;
    while (slot?.isVisited) {
      slot.isVisited = false;
      slot = slot.newer ?? this.#oldest;
    }
    this.#hand = slot?.newer ?? null;
    return slot;
  }
}
