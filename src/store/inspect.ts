// Reads a data directory without changes to it, also while another process serves it; knows no writer.
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { StoreError } from "./error.ts";
import { migrate } from "./migrations.ts";
import { DATABASE } from "./open-database.ts";
import type { StoredState } from "./store.ts";
import { toStoreError } from "./open-database.ts";
import { Tables } from "./tables.ts";

/** The stored configuration; throws a StoreError with the reason when it cannot be read. */
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

/** The fleet that a data directory is part of, and the id of its node. */
export interface FleetMembership {
  readonly fleetId: string;
  readonly nodeId: string;
}

/** Of a data directory that a gateway serves; null: it is part of no fleet, or no gateway serves it. */
export function inspectFleet(dataDir: string): FleetMembership | null {
  const path = join(dataDir, DATABASE);
  if (!existsSync(`${path}-shm`)) return null;
  try {
    const database = new Database(path, { readonly: true });
    try {
      const tables = new Tables(drizzle(database));
      const [fleetId, nodeId] = [tables.getMeta("fleet_id"), tables.getMeta("instance_id")];
      return fleetId === null || nodeId === null ? null : { fleetId, nodeId };
    } finally {
      database.close();
    }
  } catch (error) {
    throw toStoreError(error, path);
  }
}

function copyOf(path: string): Uint8Array {
  if (!existsSync(path)) throw new StoreError(`there is no database at ${path}`);
  const bytes = existsSync(`${path}-shm`) ? serialize(path) : new Uint8Array(readFileSync(path));
  // Clears WAL mode in the file header, because a database in memory cannot use it.
  bytes.fill(1, 18, 20);
  return bytes;
}

/** Includes the changes in the -wal file. Opening a database without one would create new files. */
function serialize(path: string): Uint8Array {
  const database = new Database(path, { readonly: true });
  try {
    return database.serialize();
  } finally {
    database.close();
  }
}
