// Times of last use: in memory, written periodically; knows nothing of what is used.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { UsedAt } from "../model/fact.ts";

export type UseRow = UsedAt;

/** The storage of times; all methods may throw. */
export interface UseStore {
  load(): readonly UseRow[];
  write(rows: readonly UseRow[]): void;
  remove(ids: readonly string[]): void;
}

export interface LastUseOptions {
  readonly store: UseStore;
  /** Noun in messages: `tokens`. */
  readonly what: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Rows per batch: some 5 ms. */
const SLICE = 2000;
const PAUSE_MS = 20;

/** Writing with every use would wear the disk. */
export class LastUse {
  readonly #options: LastUseOptions;
  readonly #last = new Map<string, number>();
  readonly #unwritten = new Set<string>();
  /** Uses that other nodes do not know; null: there are none. */
  #unshared: Set<string> | null = null;
  /** Timer of the next batch. */
  #timer: Timer | null = null;

  constructor(options: LastUseOptions) {
    this.#options = options;
    for (const { id, last_used_at } of options.store.load())
      this.#last.set(id, Date.parse(last_used_at));
  }

  touch(id: string): void {
    this.#last.set(id, this.#options.clock.now());
    this.#unwritten.add(id);
    this.#unshared?.add(id);
  }

  /** Collects uses for other nodes from now on. */
  share(): void {
    this.#unshared = new Set();
  }

  /** Up to `limit` uses that other nodes do not know, those that wait longest first. */
  unshared(limit: number): readonly UseRow[] {
    return [...(this.#unshared ?? [])].slice(0, limit).map((id) => this.#rowOf(id));
  }

  /** Other nodes know these times. */
  markShared(rows: readonly UseRow[]): void {
    for (const { id, last_used_at } of rows)
      if (this.lastUsedAt(id) === last_used_at) this.#unshared?.delete(id);
  }

  /** Takes over stored times of another node that are newer. */
  observe(rows: readonly UseRow[]): void {
    for (const { id, last_used_at } of rows) {
      const at = Date.parse(last_used_at);
      if (at > (this.#last.get(id) ?? 0)) this.#last.set(id, at);
    }
  }

  /** RFC 3339, UTC; null: never. */
  lastUsedAt(id: string): string | null {
    const at = this.#last.get(id);
    return at === undefined ? null : new Date(at).toISOString();
  }

  /** Drops deleted objects. */
  forget(ids: readonly string[]): void {
    const known = ids.filter((id) => this.#last.delete(id));
    for (const id of known) {
      this.#unwritten.delete(id);
      this.#unshared?.delete(id);
    }
    if (known.length > 0) this.#attempt(() => this.#options.store.remove(known));
  }

  /**
   * Writes new times in batches with pauses, because one write for all credentials would block this thread. Call it
   * periodically, and with `all` at the stop.
   */
  flush(all = false): void {
    if (all) {
      this.#stop();
      this.#write([...this.#unwritten]);
      return;
    }
    // The next call writes newer ones.
    if (this.#timer === null) this.#writeOn([...this.#unwritten], 0);
  }

  /** Writes a batch, and the next one after a pause. */
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

  /** Writes the unwritten rows of existing objects; returns whether it succeeded. */
  #write(ids: readonly string[]): boolean {
    const rows = ids.filter((id) => this.#unwritten.has(id)).map((id) => this.#rowOf(id));
    if (rows.length === 0) return true;
    return this.#attempt(() => {
      this.#options.store.write(rows);
      for (const { id } of rows) this.#unwritten.delete(id);
    });
  }

  #rowOf(id: string): UseRow {
    return { id, last_used_at: this.lastUsedAt(id) ?? "" };
  }

  /** Nothing depends on these times, so a failure is only logged. */
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
