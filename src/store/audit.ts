// The audit log in its table: rows are added, and deleted when they are too old or too many, never changed.
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { audit } from "./schema.ts";

/** A row to add, without the number that it gets. */
export type AuditRow = Omit<typeof audit.$inferInsert, "id">;

export class AuditTable {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  /** To be called inside a transaction. */
  append(rows: readonly AuditRow[]): void {
    for (const row of rows) this.#db.insert(audit).values(row).run();
  }
}
