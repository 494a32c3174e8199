// Reads the SQLite file of another program from memory, table by table; knows none of its tables and writes nothing.
import { Database } from "bun:sqlite";

/** The tables of the file; rows are plain values by column. */
export interface ForeignTables {
  readonly names: readonly string[];
  /** Empty when there is no such table. */
  rows(table: string): readonly Readonly<Record<string, unknown>>[];
}

/** The file is no SQLite database, or is damaged. */
export class ForeignDatabaseError extends Error {}

const MAGIC = "SQLite format 3\0";
const MAX_ROWS = 100_000;
/** Valid table names of the other program. */
const NAME = /^[a-z_]{1,64}$/;

/** Runs nothing that the file defines: no views, virtual tables or triggers. */
export function readForeignTables(bytes: Uint8Array): ForeignTables {
  const copy = new Uint8Array(bytes);
  if (new TextDecoder("latin1").decode(copy.subarray(0, MAGIC.length)) !== MAGIC)
    throw new ForeignDatabaseError("the file is no SQLite database");
  // A file in WAL mode cannot be opened without its log; its own content is consistent.
  copy[18] = 1;
  copy[19] = 1;
  return reading(() => readAll(copy));
}

function readAll(bytes: Uint8Array): ForeignTables {
  const database = Database.deserialize(bytes, true);
  try {
    database.run("PRAGMA trusted_schema = OFF");
    database.run("PRAGMA cell_size_check = ON");
    const listed = database
      .query<{ name: string; sql: string }, []>(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name",
      )
      .all();
    const tables = new Map<string, readonly Readonly<Record<string, unknown>>[]>();
    for (const { name, sql } of listed) {
      // A generated column would run an expression of the file.
      if (!NAME.test(name) || !isPlain(sql)) continue;
      const rows = database
        .query<Record<string, unknown>, [number]>(`SELECT * FROM "${name}" LIMIT ?`)
        .all(MAX_ROWS + 1);
      if (rows.length > MAX_ROWS)
        throw new ForeignDatabaseError(`the table ${name} has more than ${MAX_ROWS} rows`);
      tables.set(name, rows);
    }
    return { names: [...tables.keys()], rows: (table) => tables.get(table) ?? [] };
  } finally {
    database.close();
  }
}

const isPlain = (sql: string) =>
  /^create table/i.test(sql) && !/\bgenerated\b|\bas\s*\(/i.test(sql);

function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ForeignDatabaseError) throw error;
    throw new ForeignDatabaseError(`the database cannot be read: ${(error as Error).message}`);
  }
}
