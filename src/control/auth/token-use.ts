// When tokens were last used: kept in memory, written now and then; knows no token's content.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";

export interface TokenUseRow {
  /** Id of a named token, `admin` for the admin token. */
  readonly token_id: string;
  /** RFC 3339, UTC. */
  readonly last_used_at: string;
}

export interface TokenUseStore {
  loadUse(): readonly TokenUseRow[];
  writeUse(rows: readonly TokenUseRow[]): void;
  removeUse(ids: readonly string[]): void;
}

export interface TokenUseOptions {
  readonly store: TokenUseStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** A token is used with every request of a program, so that a write for each would wear the disk. */
export class TokenUse {
  readonly #options: TokenUseOptions;
  readonly #last = new Map<string, number>();
  readonly #unwritten = new Set<string>();

  constructor(options: TokenUseOptions) {
    this.#options = options;
    for (const { token_id, last_used_at } of options.store.loadUse())
      this.#last.set(token_id, Date.parse(last_used_at));
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

  /** Forgets tokens that are gone. */
  forget(ids: readonly string[]): void {
    const known = ids.filter((id) => this.#last.delete(id));
    for (const id of known) this.#unwritten.delete(id);
    if (known.length > 0) this.#attempt(() => this.#options.store.removeUse(known));
  }

  /** Writes what is new; to be called now and then, and at the end. */
  flush(): void {
    const rows = [...this.#unwritten].map((id) => ({
      token_id: id,
      last_used_at: this.lastUsedAt(id) ?? "",
    }));
    if (rows.length === 0) return;
    this.#attempt(() => {
      this.#options.store.writeUse(rows);
      this.#unwritten.clear();
    });
  }

  /** Nothing depends on these times, so nobody is refused because they could not be written. */
  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#options.log.warn("the last use of tokens could not be written", { error });
    }
  }
}
