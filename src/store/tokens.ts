// The admin token and the last use of all tokens in their tables; knows nothing of access.
import { inArray, sql } from "drizzle-orm";
import { adminToken, tokenUse } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

type AdminTokenRow = Omit<typeof adminToken.$inferSelect, "id">;

export class TokenTable {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  loadAdminToken(): AdminTokenRow | null {
    const row = this.#context.db.select().from(adminToken).get();
    return row === undefined ? null : { token_hash: row.token_hash, created_at: row.created_at };
  }

  /** Null deletes it. */
  writeAdminToken(token: AdminTokenRow | null): void {
    this.#context.transact(() => {
      this.#context.db.delete(adminToken).run();
      if (token !== null)
        this.#context.db
          .insert(adminToken)
          .values({ id: 1, ...token })
          .run();
    });
  }

  loadUse(): (typeof tokenUse.$inferSelect)[] {
    return this.#context.db.select().from(tokenUse).all();
  }

  writeUse(rows: readonly (typeof tokenUse.$inferInsert)[]): void {
    this.#context.transact(() => {
      for (const row of rows)
        this.#context.db
          .insert(tokenUse)
          .values(row)
          .onConflictDoUpdate({
            target: tokenUse.token_id,
            set: { last_used_at: sql`excluded.last_used_at` },
          })
          .run();
    });
  }

  removeUse(ids: readonly string[]): void {
    this.#context.transact(() => {
      this.#context.db
        .delete(tokenUse)
        .where(inArray(tokenUse.token_id, [...ids]))
        .run();
    });
  }
}
