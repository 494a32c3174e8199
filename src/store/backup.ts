// A consistent copy of the database of a data directory, also while a gateway serves it; changes nothing in the directory.
import { Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Log } from "../log.ts";
import { StorageError } from "../model/error.ts";
import { StoreError } from "./error.ts";
import { COPIES_FOLDER, DATABASE } from "./open-database.ts";
import { sealedKeyIds } from "./sealed-texts.ts";

export interface BackupOptions {
  readonly dataDir: string;
  /** Path of the copy. */
  readonly target: string;
  /** Whether to replace an existing file. */
  readonly overwrite: boolean;
  /** Called before each step but the first. Default: ignored. */
  readonly onStep?: (what: string) => void;
}

export interface BackupReport {
  /** Revision of the configuration in it. */
  readonly revision: number;
  readonly bytes: number;
  /** Ids of the keys that its secrets are encrypted with; empty: it holds none. */
  readonly keyIds: readonly string[];
}

/**
 * Copies the database of a node, which is to lose changes, as it is after the fleet's entry at `position`. Throws a StorageError when
 * it cannot.
 */
export function keepCopy(dataDir: string, position: number, log: Log): void {
  const target = join(dataDir, COPIES_FOLDER, `fleet-entry-${position}.db`);
  try {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    backUp({ dataDir, target, overwrite: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StorageError(
      `what this node has and its fleet lacks could not be copied (${reason}); nothing was changed`,
      error,
    );
  }
  log.warn("this node takes another state of its fleet; what it had was copied", { path: target });
}

/** Writes the file atomically, readable for its owner only. Throws a StoreError with the reason. */
export function backUp({ dataDir, target, overwrite, onStep }: BackupOptions): BackupReport {
  const source = join(dataDir, DATABASE);
  if (!existsSync(source)) throw new StoreError(`there is no database at ${source}`);
  if (!overwrite && existsSync(target)) throw new StoreError(existsAlready(target));
  refuseOwnFiles(source, target);
  const unfinished = join(dirname(target), `.${basename(target)}.${process.pid}.part`);
  try {
    closeSync(openSync(unfinished, "wx", 0o600));
    try {
      copy(source, unfinished);
      onStep?.("the copy is checked");
      const report = verify(unfinished);
      onStep?.("the copy is written to the disk");
      sync(unfinished);
      publish(unfinished, target, overwrite);
      return report;
    } finally {
      rmSync(unfinished, { force: true });
    }
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError(`backup to ${target}: ${(error as Error).message}`, { cause: error });
  }
}

const existsAlready = (target: string) => `${target} exists; --force replaces it`;

/** Files in a data directory that the gateway requires. */
const OWN_FILE = /^(?:sluice\.(?:db|lock|pem|pid)(?:-\w+)?|secret\.key|control\.\w+)$/;

/** A mistaken FILE must not overwrite the live database or the key of its secrets. */
function refuseOwnFiles(source: string, target: string): void {
  const there = statSync(target, { throwIfNoEntry: false });
  if (there === undefined) return;
  const dataDir = dirname(source);
  for (const name of readdirSync(dataDir)) {
    if (!OWN_FILE.test(name)) continue;
    const own = statSync(join(dataDir, name), { throwIfNoEntry: false });
    if (own?.ino !== there.ino || own.dev !== there.dev) continue;
    const isDatabase = name.startsWith(basename(source));
    throw new StoreError(
      `${target} is ${isDatabase ? "the database itself" : `the gateway's own ${name}`}`,
    );
  }
}

const ATTEMPTS = 20;

/**
 * Reads an open database through SQLite, which returns a consistent state while others write. Reads a closed one as a file,
 * because opening it would leave files behind.
 */
function copy(source: string, into: string): void {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const database = isOpen(source) ? new Database(source, { readonly: true }) : openUnused(source);
    if (database === null) continue;
    try {
      database.run("PRAGMA busy_timeout = 5000");
      // Without free pages, which may hold deleted secrets.
      database.run("VACUUM INTO ?", [into]);
      return;
    } finally {
      database.close();
    }
  }
  throw new StoreError(`${source} is opened and closed too often to copy it`);
}

/** A non-empty -wal file holds the last changes. */
function isOpen(source: string): boolean {
  const wal = statSync(`${source}-wal`, { throwIfNoEntry: false });
  return existsSync(`${source}-shm`) || (wal?.size ?? 0) > 0;
}

/** In memory; null when another process has opened or written it meanwhile. */
function openUnused(source: string): Database | null {
  const before = statSync(source, { bigint: true });
  const bytes = new Uint8Array(readFileSync(source));
  const after = statSync(source, { bigint: true });
  const isSame = before.mtimeNs === after.mtimeNs && before.ino === after.ino;
  if (!isSame || isOpen(source)) return null;
  // In the file header: not in WAL mode, which a copy in memory cannot have.
  bytes.fill(1, 18, 20);
  return Database.deserialize(bytes);
}

/** Throws for a copy that could not be restored. */
function verify(path: string): BackupReport {
  const database = new Database(path, { readonly: true });
  try {
    const problems = database.query<{ quick_check: string }, []>("PRAGMA quick_check").all();
    const [first] = problems;
    if (first?.quick_check !== "ok")
      throw new StoreError(`the database is damaged: ${first?.quick_check ?? "it cannot be read"}`);
    const last = database
      .query<{ revision: number | null }, []>("SELECT max(revision) AS revision FROM revisions")
      .get();
    const revision = last?.revision ?? null;
    if (revision === null) throw new StoreError("the database holds no configuration");
    return { revision, bytes: statSync(path).size, keyIds: [...sealedKeyIds(database)] };
  } finally {
    database.close();
  }
}

function sync(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function publish(unfinished: string, target: string, overwrite: boolean): void {
  if (overwrite) renameSync(unfinished, target);
  else linkOrRefuse(unfinished, target);
  sync(dirname(target));
}

/** A link, unlike a rename, fails when the file exists meanwhile. */
function linkOrRefuse(unfinished: string, target: string): void {
  try {
    linkSync(unfinished, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw new StoreError(existsAlready(target), { cause: error });
    // Some file systems have no links.
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP") throw error;
    renameSync(unfinished, target);
  }
}
