// A map that evicts entries not used lately; knows nothing of what it holds.

/** Below this hit ratio, caching does not pay. */
const WORTH_IT = 0.25;
/** Then nothing is cached for so many times `size` lookups. */
const STAND_ASIDE = 16;

/**
 * Holds the entries used last: at least `size`, at most twice as many. When nearly every lookup misses, it stops caching for
 * a while: short-lived entries without hits cost the garbage collector more than creating them again, 5 microseconds of a
 * request's 40 with 100,000 clients in turn.
 */
export class RecentMap<K, V> {
  readonly #size: number;
  #young = new Map<K, V>();
  #old: ReadonlyMap<K, V> = new Map();
  /** Lookups and hits since the last turnover. */
  #asked = 0;
  #known = 0;
  /** Lookups until caching resumes. */
  #standsAside = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get(key: K): V | undefined {
    if (this.#standsAside > 0) {
      this.#standsAside--;
      return undefined;
    }
    this.#asked++;
    const young = this.#young.get(key);
    if (young !== undefined) {
      this.#known++;
      return young;
    }
    const old = this.#old.get(key);
    if (old === undefined) return undefined;
    this.#known++;
    this.set(key, old);
    return old;
  }

  set(key: K, value: V): void {
    if (this.#standsAside > 0) return;
    if (this.#young.size >= this.#size && !this.#turnOver()) return;
    this.#young.set(key, value);
  }

  /** Makes room; false: caching does not pay. */
  #turnOver(): boolean {
    const isWorthIt = this.#known >= this.#asked * WORTH_IT;
    this.#asked = 0;
    this.#known = 0;
    this.#old = isWorthIt ? this.#young : new Map();
    this.#young = new Map();
    if (!isWorthIt) this.#standsAside = this.#size * STAND_ASIDE;
    return isWorthIt;
  }
}
