// When tokens were last used, in the words of their table; knows no token's content.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { LastUse } from "../control/last-use.ts";

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

export class TokenUse extends LastUse {
  constructor({ store, clock, log }: TokenUseOptions) {
    const rows = {
      load: () => store.loadUse().map(({ token_id: id, last_used_at }) => ({ id, last_used_at })),
      write: (used: readonly { readonly id: string; readonly last_used_at: string }[]) =>
        store.writeUse(used.map(({ id, last_used_at }) => ({ token_id: id, last_used_at }))),
      remove: (ids: readonly string[]) => store.removeUse(ids),
    };
    super({ store: rows, what: "tokens", clock, log });
  }
}
