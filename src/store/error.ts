// Errors of a data directory for the operator; knows no HTTP.

/** Thrown while a store is opened or read; the program prints its message and exits. */
export class StoreError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreError";
  }
}

/** Another process holds the data directory. */
export class DirectoryInUseError extends StoreError {}

/** SQLite's result code, `SQLITE_FULL` for one; empty for other errors. */
export function sqliteCode(error: unknown): string {
  // drizzle wraps the error of SQLite.
  for (let current = error; current instanceof Error; current = current.cause) {
    const code = (current as { code?: unknown }).code;
    if (typeof code === "string" && code.startsWith("SQLITE_")) return code;
  }
  return "";
}
