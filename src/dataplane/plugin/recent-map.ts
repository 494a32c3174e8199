// A map that forgets what was not asked for lately; knows nothing of what it holds.

/** Holds what was used last: at least `size` entries, at most twice as many. */
export class RecentMap<K, V> {
  readonly #size: number;
  #young = new Map<K, V>();
  #old: ReadonlyMap<K, V> = new Map();

  constructor(size: number) {
    this.#size = size;
  }

  get(key: K): V | undefined {
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: K, value: V): void {
    if (this.#young.size >= this.#size) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }
}
