// Interface for reading a database file, and files beside it; knows no database and no table.

/** A row, by column. */
export type Row = Readonly<Record<string, unknown>>;

export interface Tables {
  readonly names: readonly string[];
  /** All rows of a table; empty when the table does not exist. */
  rows(table: string): readonly Row[];
}

/** Reads a whole file from memory; throws a 400 for an invalid file. */
export type OpenTables = (bytes: Uint8Array) => Tables;

/** The text of a file, or why it cannot be read. */
export type FoundFile = { readonly text: string } | { readonly problem: string };

/** Finds a file of the source by its path in the containers of that program, `/data/x`; null: it is not there. */
export type FindFile = (path: string) => FoundFile | null;
