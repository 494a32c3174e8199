// Reads a data directory without changing any of it, also while another process serves it; knows no writer.
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { StoreError } from "./error.ts";
import { migrate } from "./migrations.ts";
import { DATABASE, type StoredState, toStoreError } from "./store.ts";
import { Tables } from "./tables.ts";

/** What is stored there; throws a StoreError with the reason when nothing can be read. */
export function inspectStore(dataDir: string): Omit<StoredState, "instanceId"> {
  try {
    const database = Database.deserialize(copyOf(join(dataDir, DATABASE)));
    try {
      migrate(database);
      const tables = new Tables(drizzle(database));
      const revision = tables.lastRevision();
      if (revision === null) throw new StoreError("the database holds no configuration");
      return { config: tables.read({ trusted: false }), revision };
    } finally {
      database.close();
    }
  } catch (error) {
    throw toStoreError(error, join(dataDir, DATABASE));
  }
}

function copyOf(path: string): Uint8Array {
  if (!existsSync(path)) throw new StoreError(`there is no database at ${path}`);
  const bytes = existsSync(`${path}-shm`) ? serialize(path) : new Uint8Array(readFileSync(path));
  // In the file header: not in WAL mode, which a copy in memory cannot have.
  bytes.fill(1, 18, 20);
  return bytes;
}

/** With the changes that are still in the -wal file. Opening a database that has none would leave new files behind. */
function serialize(path: string): Uint8Array {
  const database = new Database(path, { readonly: true });
  try {
    return database.serialize();
  } finally {
    database.close();
  }
}
