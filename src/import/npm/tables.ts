// Interface for reading a database file; knows no database and no table.

/** A row, by column. */
export type Row = Readonly<Record<string, unknown>>;

export interface Tables {
  readonly names: readonly string[];
  /** All rows of a table; empty when the table does not exist. */
  rows(table: string): readonly Row[];
}

/** Reads a whole file from memory; throws a 400 for an invalid file. */
export type OpenTables = (bytes: Uint8Array) => Tables;
