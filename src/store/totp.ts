// Second factors in their table: at most one per user; knows nothing of codes or sign-ins.
import { eq } from "drizzle-orm";
import { totp } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

/** A row as it is stored. */
export type TotpRow = typeof totp.$inferSelect;

export class TotpTable {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  /** Null when the user has none. */
  get(userId: string): TotpRow | null {
    return this.#context.db.select().from(totp).where(eq(totp.user_id, userId)).get() ?? null;
  }

  /** Of all users, in no order. */
  all(): TotpRow[] {
    return this.#context.db.select().from(totp).all();
  }

  /** Replaces the user's second factor. */
  put(row: TotpRow): void {
    const { user_id: _, ...set } = row;
    this.#context.transact(() =>
      this.#context.db
        .insert(totp)
        .values(row)
        .onConflictDoUpdate({ target: totp.user_id, set })
        .run(),
    );
  }

  /** Does nothing when the user has none. */
  remove(userId: string): void {
    this.#context.transact(() =>
      this.#context.db.delete(totp).where(eq(totp.user_id, userId)).run(),
    );
  }
}
