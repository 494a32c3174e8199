// Migrates a database to the schema of this program, with statements inside the executable; knows no table.
import type { Database } from "bun:sqlite";
import { migrations } from "./migration-list.ts";
import { StoreError } from "./error.ts";

/** Number of applied migrations. */
export const schemaVersion = (database: Database): number =>
  database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;

/** What a step to a schema version has changed that its users should know. */
const noticesByVersion: Readonly<Record<number, string>> = {
  12: 'listeners have the engines "sluice" and "bun" now: all former ones became "sluice", which serves what "standard", "full" and both together did and takes less processor time; "bun" is what "standard" was; see docs/listeners.md',
};

/** For users of a database that was at `before`. */
export const noticesSince = (before: number): readonly string[] =>
  Object.entries(noticesByVersion)
    .filter(([version]) => before > 0 && before < Number(version))
    .map(([, notice]) => notice);

/**
 * Applies the missing migrations atomically and returns their number. Refuses a database of a newer program without any
 * change, because this program does not know its schema.
 */
export function migrate(database: Database, steps: readonly string[] = migrations): number {
  // user_version is part of the file header, so it changes in the same transaction as the tables.
  const found = schemaVersion(database);
  if (found > steps.length)
    throw new StoreError(
      `the database has schema version ${found}, this program knows versions up to ${steps.length}: ` +
        "it was written by a newer sluice; nothing was changed",
    );
  if (found === steps.length) return 0;
  database.transaction(() => {
    for (const statements of steps.slice(found)) database.run(statements);
    database.run(`PRAGMA user_version = ${steps.length}`);
  })();
  return steps.length - found;
}
