// Times of last use of credentials, from the workers; knows no traffic.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Changes } from "./change.ts";
import { LastUse, type UseStore } from "./last-use.ts";

export interface CredentialUseOptions {
  readonly changes: Changes;
  readonly store: UseStore;
  readonly clock: Clock;
  readonly log: Log;
}

export class CredentialUse {
  readonly #changes: Changes;
  readonly #last: LastUse;

  constructor(options: CredentialUseOptions) {
    this.#changes = options.changes;
    this.#last = new LastUse({ ...options, what: "credentials" });
    options.changes.onStored(({ change }) => this.#last.forget(change.credentials.removals));
  }

  /** Records the current time for accepted credentials. */
  touch(ids: readonly string[]): void {
    const { credentials } = this.#changes.config;
    // A worker may report a credential that was deleted meanwhile.
    for (const id of ids) if (credentials.has(id)) this.#last.touch(id);
  }

  /** RFC 3339, UTC; null: never. */
  lastUsedAt(id: string): string | null {
    return this.#last.lastUsedAt(id);
  }

  /** Writes new times; called about once a minute, and at the end with `all`. */
  flush(all = false): void {
    this.#last.flush(all);
  }
}
