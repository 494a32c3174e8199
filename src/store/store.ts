// The desired state in SQLite: opened once, loaded once, written one change at a time; knows nothing of how it is served.
import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import {
  type CollectionName,
  type ConfigChange,
  type GatewayConfig,
  mapCollections,
  type ResourceChange,
} from "../model/gateway-config.ts";
import type { Pace } from "../pace.ts";
import { newestCopy } from "./copies.ts";
import { type AuditRow, AuditTable } from "./audit.ts";
import {
  createPrivateFile,
  type DirectoryLock,
  lockDirectory,
  prepareDirectory,
} from "./directory.ts";
import { StoreError, sqliteCode } from "./error.ts";
import { migrate, migrations, schemaVersion } from "./migrations.ts";
import { replaceSealed, sealedKeyIds } from "./sealed-texts.ts";
import { toStoredChange } from "./revisions.ts";
import { type StagedChange, stageChange } from "./staged-change.ts";
import { documentFormat, type RevisionEntry, Tables } from "./tables.ts";

export interface StoreOptions {
  readonly dataDir: string;
  readonly log: Log;
}

export interface StoredState {
  readonly config: GatewayConfig;
  readonly revision: number;
  /** Made once for each data directory. */
  readonly instanceId: string;
}

export interface Commit {
  readonly revision: number;
  readonly change: ConfigChange;
  /** What takes the change back; absent: nothing does. */
  readonly undo?: ConfigChange;
  readonly entry: RevisionEntry;
  /** What the audit log keeps of it; default: nothing. */
  readonly audit?: readonly AuditRow[];
  /** Writes more in the same transaction. */
  readonly alongside?: () => void;
  /** From `stage`. */
  readonly staged?: StagedChange | null;
}

/** What a table that is not part of the configuration is made from. */
export interface TableContext {
  readonly db: BunSQLiteDatabase;
  /** Runs `write` all or nothing. */
  transact(write: () => void): void;
}

export const DATABASE = "sluice.db";

/** From a large commit to its checkpoint: time to activate the version and to answer the client. */
const CHECKPOINT_MS = 1000;

/** The only writer of a data directory. Every method is synchronous: no transaction is ever open across an await. */
export class Store {
  readonly #database: Database;
  readonly #db: BunSQLiteDatabase;
  readonly #tables: Tables;
  /** Adding one row needs no transaction. */
  readonly audit: AuditTable;
  readonly #lock: DirectoryLock;
  readonly #path: string;
  /** Of the file that is open. */
  readonly #inode: number;
  #retainedRevisions = 1000;
  /** The checkpoint of a large change; null: SQLite makes its own. */
  #checkpoint: Timer | null = null;

  private constructor(database: Database, path: string, lock: DirectoryLock) {
    this.#database = database;
    this.#path = path;
    this.#inode = statSync(path).ino;
    this.#lock = lock;
    this.#db = drizzle(database);
    this.#tables = new Tables(this.#db);
    this.audit = new AuditTable(this.#db);
  }

  /** Whether something was ever stored in the data directory; changes nothing. */
  static isThere(dataDir: string): boolean {
    return existsSync(join(dataDir, DATABASE));
  }

  /** Takes the data directory for this process; throws a StoreError with the reason when it cannot be used. */
  static open({ dataDir, log }: StoreOptions): Store {
    const lock = takeDirectory(dataDir, log);
    try {
      const path = join(dataDir, DATABASE);
      const store = new Store(openDatabase(path, log), path, lock);
      if (store.isEmpty()) store.#identify();
      return store;
    } catch (error) {
      lock.release();
      throw toStoreError(error, join(dataDir, DATABASE));
    }
  }

  /** What `create` makes of the database: tables beside the configuration, such as sessions. */
  with<T>(create: (context: TableContext) => T): T {
    return create({ db: this.#db, transact: (write) => this.#transact(write) });
  }

  /** Ids of the keys that stored secrets are encrypted under. */
  sealedKeyIds(): ReadonlySet<string> {
    return this.#read(() => sealedKeyIds(this.#database));
  }

  /** Why nothing can be stored at the moment, as far as that is known without trying; null: nothing is known against it. */
  problem(): string | null {
    const inode = statSync(this.#path, { throwIfNoEntry: false })?.ino;
    if (inode === this.#inode) return null;
    return `${this.#path} was ${inode === undefined ? "removed" : "replaced"} while it was in use`;
  }

  /** Damage that only shows in the middle of the file ends the start with the same words as a file that cannot be opened. */
  #read<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (isDamage(error)) throw toStoreError(error, this.#path);
      throw error;
    }
  }

  /**
   * Gives every stored text that holds an encrypted value to `replace`, all or nothing. `judge` gets the ids of the keys
   * that are in use then, and throws to take all of it back.
   */
  replaceSealed(
    replace: (text: string) => string,
    judge: (keyIds: ReadonlySet<string>) => void,
  ): void {
    this.#transact(() => {
      replaceSealed(this.#database, replace);
      judge(sealedKeyIds(this.#database));
    });
  }

  /** Writes the file anew, so that no page keeps what was deleted or replaced. */
  compact(): void {
    this.#database.run("VACUUM");
    this.#database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  /** Whether nothing was ever committed: the caller makes the first configuration and commits it with `begin`. */
  isEmpty(): boolean {
    return this.#tables.lastRevision() === null;
  }

  get instanceId(): string {
    return this.#tables.getMeta("instance_id") ?? "";
  }

  /** The whole desired state; fields that were added to the model since it was stored have their defaults. */
  load(): StoredState {
    return this.#read(() => this.#load());
  }

  #load(): StoredState {
    const revision = this.#tables.lastRevision();
    if (revision === null) throw new StoreError("the database holds no configuration");
    const format = documentFormat();
    const trusted = this.#tables.getMeta("document_format") === format;
    const config = this.#tables.read({ trusted });
    if (!trusted)
      this.#transact(() => {
        this.#tables.write(wholeOf(config));
        this.#tables.setMeta("document_format", format);
      });
    this.#retainedRevisions = config.settings.retention.revisions;
    return { config, revision, instanceId: this.instanceId };
  }

  /** Writes the first configuration as revision 1. */
  begin(config: GatewayConfig, entry: RevisionEntry): void {
    this.commit({ revision: 1, change: wholeOf(config), entry });
  }

  /** Makes the texts that `commit` writes for a large change, in slices; null: the change is small. */
  stage(change: ConfigChange, undo: ConfigChange, pace: Pace): Promise<StagedChange | null> {
    return stageChange(change, undo, pace);
  }

  /** Writes one change, its revision and its entry, all or nothing; throws a 500 in words when it could not. */
  commit({ revision, change, undo, entry, audit = [], alongside, staged }: Commit): void {
    const retained = change.settings?.retention.revisions ?? this.#retainedRevisions;
    // SQLite would go on writing to a file that nobody finds any more.
    const problem = this.problem();
    if (problem !== null) throw new ApiError(500, `${problem}; nothing was changed`);
    if (staged) this.#checkpointLater();
    try {
      this.#transact(() => {
        this.#tables.write(change, {
          staged: staged ?? null,
          ...(undo === undefined ? {} : { undo }),
        });
        const text = staged?.revision ?? JSON.stringify(toStoredChange(change, undo));
        this.#tables.writeRevision(revision, { entry, change: text }, retained);
        this.audit.append(audit);
        alongside?.();
      });
    } catch (error) {
      throw new ApiError(
        500,
        `the database could not be written: ${reasonOf(error)}; nothing was changed`,
        { cause: error },
      );
    }
    this.#retainedRevisions = retained;
  }

  /**
   * SQLite writes a large change twice: into the -wal file in the transaction, and by default at its end from there into the
   * database. The second half moves out of the commit, which holds the thread.
   */
  #checkpointLater(): void {
    this.#database.run("PRAGMA wal_autocheckpoint = 0");
    this.#checkpoint ??= setTimeout(() => this.#checkpointNow(), CHECKPOINT_MS);
  }

  #checkpointNow(): void {
    if (this.#checkpoint === null) return;
    clearTimeout(this.#checkpoint);
    this.#checkpoint = null;
    try {
      this.#database.run("PRAGMA wal_autocheckpoint = 1000");
      this.#database.run("PRAGMA wal_checkpoint(PASSIVE)");
    } catch {
      // What is in the -wal file is stored. SQLite tries again with the next change, which says what is wrong.
    }
  }

  /** Lets another process take the data directory; this one may read on, and write what is no configuration. */
  letGo(): void {
    this.#lock.release();
  }

  /**
   * Takes the data directory back. What the other process left may be more than this one knows: the answer says what, and then
   * nothing may be written any more; null: everything is as it was. Throws a DirectoryInUseError while the other one has it.
   */
  reclaim(revision: number): string | null {
    this.#lock.retake();
    if (schemaVersion(this.#database) !== migrations.length)
      return "the database was brought to a newer schema, which this version does not know";
    if (this.#tables.lastRevision() !== revision)
      return "the configuration in the database was changed by another process";
    // A newer version may have filled in fields of its own: whoever reads next must not rely on either form.
    if (this.#tables.getMeta("document_format") !== documentFormat())
      this.#tables.setMeta("document_format", "");
    return null;
  }

  /** Lets go of the database that another process serves now. */
  leave(): void {
    if (this.#checkpoint !== null) clearTimeout(this.#checkpoint);
    this.#database.close();
  }

  close(): void {
    if (this.#checkpoint !== null) clearTimeout(this.#checkpoint);
    // SQLite itself does this only once all prepared statements are gone, which nobody waits for at the end.
    try {
      this.#database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      this.#database.close();
      this.#lock.release();
    }
  }

  #transact(write: () => void): void {
    this.#database
      .transaction(() => {
        // Rows are deleted and inserted anew: references are compared once, at the end.
        this.#database.run("PRAGMA defer_foreign_keys = ON");
        write();
      })
      .immediate();
  }

  /** What is known about a database before anything is in it. */
  #identify(): void {
    this.#transact(() => {
      this.#tables.setMeta("instance_id", Bun.randomUUIDv7());
      this.#tables.setMeta("document_format", documentFormat());
    });
  }
}

function takeDirectory(dataDir: string, log: Log): DirectoryLock {
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

/** What people can do something about: a disk that is read-only or full, permissions. */
const DISK_ERRORS = ["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT", "EIO", "ENOTDIR"];

function openDatabase(path: string, log: Log): Database {
  const isNew = !existsSync(path);
  createPrivateFile(path);
  const database = new Database(path, { readwrite: true, create: true });
  try {
    // A person may have the file open in a shell: wait for a moment instead of failing a change.
    database.run("PRAGMA busy_timeout = 2000");
    database.run("PRAGMA journal_mode = WAL");
    // A revision that was answered for must survive a power failure.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA foreign_keys = ON");
    if (!isNew && statSync(path).size <= CHECKED_BYTES) checkPages(database);
    const steps = migrate(database);
    if (steps > 0 && !isNew) log.info("the database was brought to the current schema", { steps });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A larger file is not read twice at each start: what is damaged in it shows when it is read. */
const CHECKED_BYTES = 33_554_432;

/** Throws when a page is not what it should be. */
function checkPages(database: Database): void {
  const [found] = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").all();
  const problem = found?.quick_check ?? "ok";
  if (problem === "ok") return;
  throw Object.assign(new Error(problem), { code: "SQLITE_CORRUPT" });
}

/** The change that writes a configuration from nothing. */
function wholeOf(config: GatewayConfig): ConfigChange {
  const collections = mapCollections((name): ResourceChange<unknown> => ({
    upserts: [...config[name].values()],
    removals: [],
  }));
  return {
    ...(collections as Pick<ConfigChange, CollectionName>),
    settings: config.settings,
    sso: config.sso,
  };
}

const isDamage = (error: unknown) =>
  ["SQLITE_CORRUPT", "SQLITE_NOTADB"].some((code) => sqliteCode(error).startsWith(code));

/** What went wrong with the database at a path, in words. */
export function toStoreError(error: unknown, path: string): StoreError {
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
      `: ${path} is damaged and was left as it is. Move it away with its -wal and -shm files and put a copy in its place, ` +
      `${copy === null ? "such as `sluice backup` makes" : `the newest here is ${copy}`}: see docs/operations.md`;
  }
  return new StoreError(`database in ${dirname(path)}: ${message}${advice}`, { cause: error });
}

function reasonOf(error: unknown): string {
  const code = sqliteCode(error);
  if (code === "SQLITE_FULL") return "the disk is full";
  if (code.startsWith("SQLITE_READONLY")) return "it is read-only";
  if (code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB")) return "it is damaged";
  if (code.startsWith("SQLITE_BUSY")) return "another program holds it locked";
  if (code.startsWith("SQLITE_IOERR")) return "the disk reported an error";
  if (code.startsWith("SQLITE_CONSTRAINT")) return "the change contradicts what is stored";
  return "SQLite refused it";
}
