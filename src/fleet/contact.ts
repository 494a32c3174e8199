// When the database of the fleet answered this node last, also across restarts; knows no database.

/** Where the time is kept over restarts, in milliseconds since the Unix epoch; null: never. */
export interface ContactStore {
  load(): number | null;
  save(at: number): void;
}

/** Saving with every heartbeat would wear the disk. */
const SAVE_MS = 60_000;

export class Contact {
  readonly #store: ContactStore;
  #savedAt = Number.NEGATIVE_INFINITY;
  /** Monotonic. */
  #answeredAt: number;

  constructor(store: ContactStore) {
    this.#store = store;
    const last = store.load();
    const agoMs = last === null ? 0 : Math.max(0, Date.now() - last);
    this.#answeredAt = performance.now() - agoMs;
  }

  /** The database has answered. */
  answered(): void {
    const now = performance.now();
    this.#answeredAt = now;
    if (now - this.#savedAt < SAVE_MS) return;
    this.#savedAt = now;
    this.#store.save(Date.now());
  }

  /** Time of the last answer, in milliseconds of performance.now(). */
  get answeredAt(): number {
    return this.#answeredAt;
  }
}
