// The last use of credentials, as reported by workers; knows no traffic.
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
  readonly times: LastUse;

  constructor(options: CredentialUseOptions) {
    this.#changes = options.changes;
    this.times = new LastUse({ ...options, what: "credentials" });
    options.changes.onStored(({ change }) => this.times.forget(change.credentials.removals));
  }

  /** Records credentials that were just accepted. */
  touch(ids: readonly string[]): void {
    const { credentials } = this.#changes.config;
    // A worker may report a credential that was deleted meanwhile.
    for (const id of ids) if (credentials.has(id)) this.times.touch(id);
  }

  /** RFC 3339, UTC; null: never. */
  lastUsedAt(id: string): string | null {
    return this.times.lastUsedAt(id);
  }

  /** Writes new times; call it about once a minute, and with `all` at the stop. */
  flush(all = false): void {
    this.times.flush(all);
  }
}
