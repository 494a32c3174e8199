// Opens the database file of a locked data directory, and explains why that or a write fails; knows no table.
import { Database } from "bun:sqlite";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Log } from "../log.ts";
import { ApiError, StorageError } from "../model/error.ts";
import {
  createPrivateFile,
  type DirectoryLock,
  lockDirectory,
  prepareDirectory,
} from "./directory.ts";
import { StoreError, sqliteCode } from "./error.ts";
import { migrate, noticesSince, schemaVersion } from "./migrations.ts";

/** Its file in the data directory. */
export const DATABASE = "sluice.db";

export function takeDirectory(dataDir: string, log: Log): DirectoryLock {
  try {
    prepareDirectory(dataDir, log);
    return lockDirectory(dataDir);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof StoreError || !DISK_ERRORS.includes(code ?? "")) throw error;
    throw new StoreError(`the data directory ${dataDir} cannot be used: ${message}`, {
      cause: error,
    });
  }
}

/** Errors that an admin can solve: a read-only or full disk, permissions. */
const DISK_ERRORS = ["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT", "EIO", "ENOTDIR"];

interface OpenedDatabase {
  readonly database: Database;
  /** What this start has changed in it, in sentences for users. */
  readonly notices: readonly string[];
}

export function openDatabase(path: string, log: Log): OpenedDatabase {
  const isNew = !existsSync(path);
  createPrivateFile(path);
  const database = new Database(path, { readwrite: true, create: true });
  try {
    // A shell may have the file open: wait for it instead of rejecting a change.
    database.run("PRAGMA busy_timeout = 2000");
    database.run("PRAGMA journal_mode = WAL");
    // A confirmed revision must survive a power failure.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA foreign_keys = ON");
    if (!isNew && statSync(path).size <= CHECKED_BYTES) checkPages(database);
    const notices = noticesSince(schemaVersion(database));
    const steps = migrate(database);
    if (steps > 0 && !isNew) log.info("the database was brought to the current schema", { steps });
    for (const notice of notices) log.warn(notice);
    return { database, notices };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Larger files are not checked at each start; reading them finds the damage later. */
const CHECKED_BYTES = 33_554_432;

/** Throws for a damaged page. */
function checkPages(database: Database): void {
  const [found] = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").all();
  const problem = found?.quick_check ?? "ok";
  if (problem === "ok") return;
  throw Object.assign(new Error(problem), { code: "SQLITE_CORRUPT" });
}

export const isDamage = (error: unknown) =>
  ["SQLITE_CORRUPT", "SQLITE_NOTADB"].some((code) => sqliteCode(error).startsWith(code));

/** A StoreError that explains a problem of the database at a path. `isOfFleet`: the fleet has all that was in it. */
export function toStoreError(error: unknown, path: string, isOfFleet = false): StoreError {
  if (error instanceof StoreError) return error;
  const { message } = error as Error;
  const code = sqliteCode(error);
  const isReadOnly = ["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"].some((known) =>
    code.startsWith(known),
  );
  let advice = isReadOnly ? `: ${path} and its directory must be writable` : "";
  if (isDamage(error)) {
    const copy = newestCopy(dirname(path));
    advice =
      `: ${path} is damaged and was left as it is. Move it away with its -wal and -shm files and ` +
      (isOfFleet
        ? "start again: this node gets the configuration of its fleet"
        : `put a copy in its place, ${copy === null ? "such as `sluice backup` makes" : `the newest here is ${copy}`}: see docs/operations.md`);
  }
  return new StoreError(`database in ${dirname(path)}: ${message}${advice}`, { cause: error });
}

/** Where the installer and the docs put copies. */
export const COPIES_FOLDER = "backups";

/** Path of the newest copy; null: there is none. */
function newestCopy(dataDir: string): string | null {
  const folder = join(dataDir, COPIES_FOLDER);
  try {
    const [newest] = readdirSync(folder)
      .filter((name) => name.endsWith(".db"))
      .map((name) => join(folder, name))
      .map((path) => ({ path, at: statSync(path).mtimeMs }))
      .toSorted((a, b) => b.at - a.at);
    return newest?.path ?? null;
  } catch {
    // Only adds detail to another error, and must not fail itself.
    return null;
  }
}

/** What an admin can mend, by the beginning of SQLite's result code: the same write may succeed later. */
const OUTAGES: Readonly<Record<string, string>> = {
  SQLITE_FULL: "the disk is full",
  SQLITE_READONLY: "it is read-only",
  SQLITE_CANTOPEN: "its file cannot be opened",
  SQLITE_PERM: "access to its file was denied",
  SQLITE_CORRUPT: "it is damaged",
  SQLITE_NOTADB: "it is damaged",
  SQLITE_BUSY: "another program holds it locked",
  SQLITE_LOCKED: "another program holds it locked",
  SQLITE_IOERR: "the disk reported an error",
};

/** For the client of a write that was rolled back. */
export function toWriteError(error: unknown): ApiError {
  // One transaction within another.
  if (error instanceof ApiError) return error;
  if (error instanceof StoreError)
    return new ApiError(500, `${error.message}; nothing was changed`, { cause: error });
  const code = sqliteCode(error);
  const [, outage] = Object.entries(OUTAGES).find(([known]) => code.startsWith(known)) ?? [];
  if (outage !== undefined)
    return new StorageError(
      `the database could not be written: ${outage}; nothing was changed`,
      error,
    );
  const reason = code.startsWith("SQLITE_CONSTRAINT")
    ? "the change contradicts what is stored"
    : "SQLite refused it";
  return new ApiError(500, `the database could not be written: ${reason}; nothing was changed`, {
    cause: error,
  });
}
