// The last use of credentials in its table; knows nothing of what a credential is.
import { inArray, sql } from "drizzle-orm";
import { credentialUse } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

interface Use {
  readonly id: string;
  /** RFC 3339, UTC. */
  readonly last_used_at: string;
}

/** Below SQLite's limit of values in one statement. */
const BATCH = 500;

export class CredentialUseTable {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  load(): Use[] {
    const { db } = this.#context;
    return db
      .select({ id: credentialUse.credential_id, last_used_at: credentialUse.last_used_at })
      .from(credentialUse)
      .all();
  }

  write(rows: readonly Use[]): void {
    const { db, transact } = this.#context;
    // Prepared once: there may be one row per credential, and the API is blocked meanwhile.
    const put = db
      .insert(credentialUse)
      .values({
        credential_id: sql.placeholder("id"),
        last_used_at: sql.placeholder("last_used_at"),
      })
      .onConflictDoUpdate({
        target: credentialUse.credential_id,
        set: { last_used_at: sql`excluded.last_used_at` },
      })
      .prepare();
    transact(() => {
      for (const { id, last_used_at } of rows) put.run({ id, last_used_at });
    });
  }

  remove(ids: readonly string[]): void {
    const { db, transact } = this.#context;
    transact(() => {
      for (let from = 0; from < ids.length; from += BATCH) {
        const some = ids.slice(from, from + BATCH);
        db.delete(credentialUse).where(inArray(credentialUse.credential_id, some)).run();
      }
    });
  }
}
