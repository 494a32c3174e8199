// Brings a database to the schema this program knows, from statements inside the executable; knows no table.
import type { Database } from "bun:sqlite";
import first from "../../drizzle/0000_first.sql" with { type: "text" };
import access from "../../drizzle/0001_access.sql" with { type: "text" };
import certificates from "../../drizzle/0002_certificates.sql" with { type: "text" };
import streamRoutes from "../../drizzle/0003_stream_routes.sql" with { type: "text" };
import consumersAndPlugins from "../../drizzle/0004_consumers_and_plugins.sql" with { type: "text" };
import acmeAndStatistics from "../../drizzle/0005_acme_and_statistics.sql" with { type: "text" };
import alerts from "../../drizzle/0006_alerts.sql" with { type: "text" };
import responseBufferNames from "../../drizzle/0007_response_buffer_names.sql" with { type: "text" };
import { StoreError } from "./error.ts";

/** In order, never changed once released; the number of them is the schema version. Written by drizzle-kit. */
export const migrations: readonly string[] = [
  first,
  access,
  certificates,
  streamRoutes,
  consumersAndPlugins,
  acmeAndStatistics,
  alerts,
  responseBufferNames,
];

/** How many steps a database has seen. */
export const schemaVersion = (database: Database): number =>
  database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;

/**
 * Applies what is missing, all or nothing, and returns how many steps that were. A database of a newer program is
 * refused untouched: this program would not know what it may not break.
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
