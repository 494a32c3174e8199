// When the database of the fleet answered this node last, also across restarts; knows no database.

/** Where the time outlives restarts. */
export interface ContactStore {
  get(key: string): string | null;
  set(key: string, value: string): void;
}

/** Milliseconds since the Unix epoch. */
const KEY = "fleet_contact";

/** Saving with every heartbeat would wear the disk. */
const SAVE_MS = 60_000;

export class Contact {
  readonly #store: ContactStore;
  #savedAt = Number.NEGATIVE_INFINITY;
  /** Monotonic. */
  #answeredAt: number;

  constructor(store: ContactStore) {
    this.#store = store;
    const last = store.get(KEY);
    const agoMs = last === null ? 0 : Math.max(0, Date.now() - Number(last));
    this.#answeredAt = performance.now() - agoMs;
  }

  /** The database has answered. */
  answered(): void {
    const now = performance.now();
    this.#answeredAt = now;
    if (now - this.#savedAt < SAVE_MS) return;
    this.#savedAt = now;
    try {
      this.#store.set(KEY, String(Date.now()));
    } catch {
      // A full disk is not the database of the fleet; the next minute tries again.
    }
  }

  /** Time of the last answer, in milliseconds of performance.now(). */
  get answeredAt(): number {
    return this.#answeredAt;
  }
}
