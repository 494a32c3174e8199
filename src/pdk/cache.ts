// A cache for plugins: bounded in number and in time, one for each instance and worker; knows no plugin.

export interface CacheOptions {
  /** The oldest entry is evicted first. */
  readonly maxEntries: number;
  readonly ttlMs: number;
  /** Milliseconds; default `performance.now`. */
  readonly now?: () => number;
}

/** A bounded map whose entries expire. */
export class Cache<T> {
  readonly #options: CacheOptions;
  readonly #now: () => number;
  readonly #entries = new Map<string, { readonly value: T; readonly until: number }>();

  constructor(options: CacheOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#now() < entry.until) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  /** `ttlMs`: for this entry. */
  set(key: string, value: T, ttlMs = this.#options.ttlMs): void {
    if (ttlMs <= 0 || this.#options.maxEntries <= 0) return;
    this.#entries.delete(key);
    if (this.#entries.size >= this.#options.maxEntries) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, { value, until: this.#now() + ttlMs });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
