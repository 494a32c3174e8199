// The admin token for automation: at most one, stored as a hash; knows no HTTP.
import type { Clock } from "../clock.ts";
import { createToken, fingerprintOf, hashToken } from "../crypto/token.ts";
import { ApiError } from "../model/error.ts";
import type { Changes } from "../control/change.ts";
import type { Actor } from "../control/principal.ts";
import type { StoredAdminToken } from "../model/fact.ts";
import type { TokenUse } from "./token-use.ts";

/** Its id among tokens. */
export const ADMIN_TOKEN_ID = "admin";

export interface AdminTokenStore {
  loadAdminToken(): StoredAdminToken | null;
}

export interface CreatedAdminToken {
  /** Returned only here. */
  readonly token: string;
  readonly fingerprint: string;
  readonly created_at: string;
}

export interface AdminTokenOptions {
  readonly store: AdminTokenStore;
  readonly changes: Pick<Changes, "record" | "onFact">;
  readonly use: TokenUse;
  readonly clock: Clock;
}

export interface AdminTokenStatus {
  readonly exists: boolean;
  readonly fingerprint: string | null;
  readonly created_at: string | null;
  readonly last_used_at: string | null;
}

export class AdminToken {
  readonly #options: AdminTokenOptions;
  readonly #listeners: (() => void)[] = [];
  #stored: StoredAdminToken | null;

  constructor(options: AdminTokenOptions) {
    this.#options = options;
    this.#stored = options.store.loadAdminToken();
    options.changes.onFact((fact) => {
      if (fact.kind === "admin_token") this.#replace(fact.token);
    });
  }

  /** Hash of the token; null when there is none. */
  get hash(): string | null {
    return this.#stored?.token_hash ?? null;
  }

  status(): AdminTokenStatus {
    const stored = this.#stored;
    if (stored === null)
      return { exists: false, fingerprint: null, created_at: null, last_used_at: null };
    return {
      exists: true,
      fingerprint: fingerprintOf(stored.token_hash),
      created_at: stored.created_at,
      last_used_at: this.#options.use.lastUsedAt(ADMIN_TOKEN_ID),
    };
  }

  /** Creates a token; the previous one becomes invalid. */
  async rotate(by: Actor): Promise<CreatedAdminToken> {
    const token = createToken();
    const created_at = new Date(this.#options.clock.now()).toISOString();
    const token_hash = hashToken(token);
    await this.#record(by, () => ({ token_hash, created_at }));
    return { token, fingerprint: fingerprintOf(token_hash), created_at };
  }

  /** Throws a 404 when there is none. */
  async remove(by: Actor): Promise<void> {
    await this.#record(by, () => {
      if (this.#stored === null) throw new ApiError(404, "the admin token does not exist");
      return null;
    });
  }

  /** Reloads the token after another process has changed the store. */
  reload(): void {
    const stored = this.#options.store.loadAdminToken();
    if (stored?.token_hash !== this.#stored?.token_hash) this.#options.use.forget([ADMIN_TOKEN_ID]);
    this.#stored = stored;
    for (const listener of this.#listeners) listener();
  }

  /** `listener` is called when the token has been replaced or deleted. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async #record(by: Actor, next: () => StoredAdminToken | null): Promise<void> {
    await this.#options.changes.record(
      () => ({ value: null, facts: [{ kind: "admin_token", token: next() }] }),
      by,
    );
  }

  #replace(next: StoredAdminToken | null): void {
    this.#stored = next;
    this.#options.use.forget([ADMIN_TOKEN_ID]);
    for (const listener of this.#listeners) listener();
  }
}
