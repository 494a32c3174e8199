// What a reader of a database file has to offer; knows no database and no table.

/** A row, by column. */
export type Row = Readonly<Record<string, unknown>>;

export interface Tables {
  readonly names: readonly string[];
  /** All rows of a table; empty when there is none of this name. */
  rows(table: string): readonly Row[];
}

/** Reads a whole file in memory; throws a 400 for what is none. */
export type OpenTables = (bytes: Uint8Array) => Tables;
