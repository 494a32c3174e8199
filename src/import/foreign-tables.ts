// Opens a database file of another program for an import; knows none of its tables.
import { ApiError } from "../model/error.ts";
import { ForeignDatabaseError, readForeignTables } from "../store/npm-database.ts";
import type { OpenTables } from "./npm/tables.ts";

/** Throws a 400 for an invalid file. */
export const openTables: OpenTables = (bytes) => {
  try {
    return readForeignTables(bytes);
  } catch (error) {
    if (!(error instanceof ForeignDatabaseError)) throw error;
    throw new ApiError(400, error.message, { cause: error });
  }
};
