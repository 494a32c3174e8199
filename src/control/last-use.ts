// When things were last used: kept in memory, written now and then; knows nothing of what is used.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";

export interface UseRow {
  readonly id: string;
  /** RFC 3339, UTC. */
  readonly last_used_at: string;
}

/** Where the times are kept; all of it may throw. */
export interface UseStore {
  load(): readonly UseRow[];
  write(rows: readonly UseRow[]): void;
  remove(ids: readonly string[]): void;
}

export interface LastUseOptions {
  readonly store: UseStore;
  /** In sentences: `tokens`. */
  readonly what: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** What is used with every request of a program cannot be written as often: it would wear the disk. */
export class LastUse {
  readonly #options: LastUseOptions;
  readonly #last = new Map<string, number>();
  readonly #unwritten = new Set<string>();

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

  /** Forgets what is gone. */
  forget(ids: readonly string[]): void {
    const known = ids.filter((id) => this.#last.delete(id));
    for (const id of known) this.#unwritten.delete(id);
    if (known.length > 0) this.#attempt(() => this.#options.store.remove(known));
  }

  /** Writes what is new; to be called now and then, and at the end. */
  flush(): void {
    const rows = [...this.#unwritten].map((id) => ({
      id,
      last_used_at: this.lastUsedAt(id) ?? "",
    }));
    if (rows.length === 0) return;
    this.#attempt(() => {
      this.#options.store.write(rows);
      this.#unwritten.clear();
    });
  }

  /** Nothing depends on these times, so nobody is refused because they could not be written. */
  #attempt(write: () => void): void {
    const { log, what } = this.#options;
    try {
      write();
    } catch (error) {
      log.warn(`the last use of ${what} could not be written`, { error });
    }
  }
}
