// What every table of the store works with; knows no table.
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";

/** Dependencies of tables outside of the configuration. */
export interface TableContext {
  readonly db: BunSQLiteDatabase;
  /** Runs `write` all or nothing. */
  transact(write: () => void): void;
}
