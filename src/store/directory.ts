// The data directory: its modes, and the lock against a second process; knows nothing of the content of files.
import { Database } from "bun:sqlite";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Log } from "../log.ts";
import { writeProblem } from "../model/file-problem.ts";
import { DirectoryInUseError, StoreError, sqliteCode } from "./error.ts";

const OWN_FILE = /^sluice[.-]/;
/** Own files, but their modes are checked where they are used, so that wrong ones cause an error. */
const KEY_FILE = /^(?:secret\.key(?:\.new)?|control\.(?:sock|token))$/;
const isOwn = (name: string) => OWN_FILE.test(name) || KEY_FILE.test(name);

/** Creates the directory if needed, and removes the access of other users where that is safe. */
export function prepareDirectory(dataDir: string, log: Log): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const { mode, uid } = statSync(dataDir);
    if ((mode & 0o077) !== 0) tightenDirectory(dataDir, { mode, uid }, log);
    for (const name of readdirSync(dataDir))
      if (OWN_FILE.test(name)) tightenFile(join(dataDir, name), log);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    const isFile = statSync(dataDir, { throwIfNoEntry: false })?.isDirectory() === false;
    const problem = isFile ? "is not a directory: name another path" : writeProblem(error);
    throw new StoreError(`data directory ${dataDir}: ${problem}`, { cause: error });
  }
}

function tightenDirectory(
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
  log: Log,
): void {
  // The directory may be /tmp or a home directory: changing its mode would break other programs.
  const shared = (mode & 0o1000) !== 0 || uid !== process.getuid?.();
  if (shared || !readdirSync(path).every(isOwn)) {
    log.warn("other users can read the names in the data directory, which holds foreign files", {
      path,
      mode: (mode & 0o777).toString(8),
    });
    return;
  }
  chmodSync(path, 0o700);
  log.warn("the data directory was open to other users; its mode is 700 now", {
    path,
    was: (mode & 0o777).toString(8),
  });
}

function tightenFile(path: string, log: Log): void {
  const { mode } = statSync(path);
  if ((mode & 0o077) === 0) return;
  chmodSync(path, 0o600);
  log.warn("a file of the data directory was open to other users; its mode is 600 now", {
    path,
    was: (mode & 0o777).toString(8),
  });
}

/** Creates an empty file with mode 600; SQLite gives its -wal and -shm files the same mode. */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, "a", 0o600));
}

/** Held for the life of the process, or until another one takes over. */
export interface DirectoryLock {
  release(): void;
  /** Locks again after `release`; throws a DirectoryInUseError when another process holds the lock. */
  retake(): void;
}

/**
 * Refuses a second process on the same directory. It is a lock of the operating system, through SQLite, so it ends with the
 * process in any case; the file beside it only names the holder.
 */
export function lockDirectory(dataDir: string): DirectoryLock {
  let held = take(dataDir);
  return {
    release: () => held.close(),
    retake() {
      held = take(dataDir);
    },
  };
}

function take(dataDir: string): Database {
  const path = join(dataDir, "sluice.lock");
  const pidPath = join(dataDir, "sluice.pid");
  createPrivateFile(path);
  const lock = new Database(path, { readwrite: true, create: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    lock.run("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (sqliteCode(error) !== "SQLITE_BUSY") throw error;
    throw new DirectoryInUseError(
      `data directory ${dataDir} is in use by another sluice (process ${readPid(pidPath)})`,
      { cause: error },
    );
  }
  createPrivateFile(pidPath);
  writeFileSync(pidPath, `${process.pid}\n`);
  return lock;
}

function readPid(path: string): string {
  try {
    return readFileSync(path, "utf8").trim() || "unknown";
  } catch {
    return "unknown";
  }
}
