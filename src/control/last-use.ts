// Times of last use: in memory, written periodically; knows nothing of what is used.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";

export interface UseRow {
  readonly id: string;
  /** RFC 3339, UTC. */
  readonly last_used_at: string;
}

/** Storage of the times; each method may throw. */
export interface UseStore {
  load(): readonly UseRow[];
  write(rows: readonly UseRow[]): void;
  remove(ids: readonly string[]): void;
}

export interface LastUseOptions {
  readonly store: UseStore;
  /** Plural for messages: `tokens`. */
  readonly what: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Rows written without a pause: about 5 ms. */
const SLICE = 2000;
const PAUSE_MS = 20;

/** A token may be used with every request; writing each use would wear the disk. */
export class LastUse {
  readonly #options: LastUseOptions;
  readonly #last = new Map<string, number>();
  readonly #unwritten = new Set<string>();
  /** Until the next slice. */
  #timer: Timer | null = null;

  constructor(options: LastUseOptions) {
    this.#options = options;
    for (const { id, last_used_at } of options.store.load())
      this.#last.set(id, Date.parse(last_used_at));
  }

  touch(id: string): void {
    this.#last.set(id, this.#options.clock.now());
    this.#unwritten.add(id);
  }

  /** RFC 3339, UTC; null: never. */
  lastUsedAt(id: string): string | null {
    const at = this.#last.get(id);
    return at === undefined ? null : new Date(at).toISOString();
  }

  /** Removes deleted objects. */
  forget(ids: readonly string[]): void {
    const known = ids.filter((id) => this.#last.delete(id));
    for (const id of known) this.#unwritten.delete(id);
    if (known.length > 0) this.#attempt(() => this.#options.store.remove(known));
  }

  /**
   * Writes new times, a part at once and the rest with pauses: one write for all credentials would block this thread. Called
   * periodically, and at the end with `all`.
   */
  flush(all = false): void {
    if (all) {
      this.#stop();
      this.#write([...this.#unwritten]);
      return;
    }
    // Times that are added meanwhile are written at the next call.
    if (this.#timer === null) this.#writeOn([...this.#unwritten], 0);
  }

  /** Writes a slice, and the next one after a pause. */
  #writeOn(ids: readonly string[], from: number): void {
    this.#timer = null;
    const end = from + SLICE;
    const isWritten = this.#write(ids.slice(from, end));
    if (!isWritten || end >= ids.length) return;
    this.#timer = setTimeout(() => this.#writeOn(ids, end), PAUSE_MS);
    this.#timer.unref();
  }

  #stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Writes those that still exist and are not written yet; returns whether it succeeded. */
  #write(ids: readonly string[]): boolean {
    const rows = ids
      .filter((id) => this.#unwritten.has(id))
      .map((id) => ({ id, last_used_at: this.lastUsedAt(id) ?? "" }));
    if (rows.length === 0) return true;
    return this.#attempt(() => {
      this.#options.store.write(rows);
      for (const { id } of rows) this.#unwritten.delete(id);
    });
  }

  /** Nothing depends on these times: a failed write must not refuse a request. */
  #attempt(write: () => void): boolean {
    const { log, what } = this.#options;
    try {
      write();
      return true;
    } catch (error) {
      log.warn(`the last use of ${what} could not be written`, { error });
      return false;
    }
  }
}
