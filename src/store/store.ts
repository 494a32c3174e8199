// The configuration in SQLite: opened once, loaded once, written one change at a time; knows no data plane.
import type { TableContext } from "./table-context.ts";
import type { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import type { Log } from "../log.ts";
import { StorageError } from "../model/error.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import { type ConfigChange, type GatewayConfig, wholeOf } from "../model/gateway-config.ts";
import type { Pace } from "../pace.ts";
import type { Commit, RecordedEntry } from "./commit.ts";
import { AuditTable } from "./audit.ts";
import type { DirectoryLock } from "./directory.ts";
import { StoreError } from "./error.ts";
import { FactTables } from "./facts.ts";
import { migrations } from "./migration-list.ts";
import { schemaVersion } from "./migrations.ts";
import {
  DATABASE,
  isDamage,
  openDatabase,
  takeDirectory,
  toStoreError,
  toWriteError,
} from "./open-database.ts";
import { sealedKeyIds, StoredKey } from "./sealed-texts.ts";
import { completed, joined } from "../model/undo.ts";
import { readChange, toStoredChange } from "./revisions.ts";
import { type StagedChange, stageChange } from "./staged-change.ts";
import { documentFormat, type RevisionEntry, Tables } from "./tables.ts";

export interface StoreOptions {
  readonly dataDir: string;
  readonly log: Log;
  /** A fleet has the configuration, too: false. */
  readonly isOfFleet?: boolean;
}

export interface StoredState {
  readonly config: GatewayConfig;
  readonly revision: number;
  /** Generated once per data directory. */
  readonly instanceId: string;
}

/** Delay from a large commit to its checkpoint: time to activate the version and to respond to the client. */
const CHECKPOINT_MS = 1000;

/** Actors of changes that follow containers and files, which may be very many. */
const DISCOVERY = "discovery:";

/** The only writer of a data directory. All methods are synchronous, so that no transaction spans an await. */
export class Store {
  readonly #database: Database;
  readonly #db: BunSQLiteDatabase;
  readonly #tables: Tables;
  /** Adding one row needs no transaction. */
  readonly audit: AuditTable;
  readonly #facts: FactTables;
  readonly secretKey: StoredKey;
  readonly #lock: DirectoryLock;
  readonly #path: string;
  /** Inode of the open file. */
  readonly #inode: number;
  #retainedRevisions = 1000;
  /** Timer for the checkpoint of a large change; null: automatic checkpoints. */
  #checkpoint: Timer | null = null;
  /** What this start has changed in the database, in sentences for users. */
  readonly notices: readonly string[];

  private constructor(
    { database, notices }: ReturnType<typeof openDatabase>,
    path: string,
    lock: DirectoryLock,
  ) {
    this.#database = database;
    this.notices = notices;
    this.#path = path;
    this.#inode = statSync(path).ino;
    this.#lock = lock;
    this.#db = drizzle(database);
    this.#tables = new Tables(this.#db);
    this.audit = new AuditTable(this.#db);
    this.#facts = this.with((context) => new FactTables(context));
    const transact = (write: () => void) => this.#transact(write);
    this.secretKey = new StoredKey({ database, meta: this.#tables, transact });
  }

  /** Whether the data directory contains a database; changes nothing. */
  static isThere(dataDir: string): boolean {
    return existsSync(join(dataDir, DATABASE));
  }

  /** Locks the data directory for this process; throws a StoreError with the reason when that fails. */
  static open({ dataDir, log, isOfFleet = false }: StoreOptions): Store {
    const lock = takeDirectory(dataDir, log);
    try {
      const path = join(dataDir, DATABASE);
      const store = new Store(openDatabase(path, log), path, lock);
      if (store.isEmpty()) store.#identify();
      return store;
    } catch (error) {
      lock.release();
      throw toStoreError(error, join(dataDir, DATABASE), isOfFleet);
    }
  }

  /** Creates tables outside of the configuration, such as sessions. */
  with<T>(create: (context: TableContext) => T): T {
    return create({ db: this.#db, transact: (write) => this.#transactOrRefuse(write) });
  }

  /** Ids of the keys of stored secrets. */
  sealedKeyIds(): ReadonlySet<string> {
    return this.#read(() => sealedKeyIds(this.#database));
  }

  /** A known reason why writing would fail; null: none. */
  problem(): string | null {
    const inode = statSync(this.#path, { throwIfNoEntry: false })?.ino;
    if (inode === this.#inode) return null;
    return `${this.#path} was ${inode === undefined ? "removed" : "replaced"} while it was in use`;
  }

  /** Reports damage within the file with the same message as a file that cannot be opened. */
  #read<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (isDamage(error)) throw toStoreError(error, this.#path);
      throw error;
    }
  }

  /** Rewrites the file, so that no page contains deleted or replaced data. */
  compact(): void {
    this.#database.run("VACUUM");
    this.#database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  /** Whether there is no revision yet: the caller creates the first configuration and commits it with `begin`. */
  isEmpty(): boolean {
    return this.#tables.lastRevision() === null;
  }

  get instanceId(): string {
    return this.#tables.getMeta("instance_id") ?? "";
  }

  /** The whole configuration; fields added since it was stored have their defaults. */
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
  begin(config: GatewayConfig, entry: RevisionEntry, mark?: EntryMark): void {
    const change = wholeOf(config);
    this.commit({ revision: 1, change, entry, ...(mark === undefined ? {} : { mark }) });
  }

  /** Serializes a large change for `commit`, in slices; null: the change is small. */
  stage(change: ConfigChange, undo: ConfigChange, pace: Pace): Promise<StagedChange | null> {
    return stageChange(change, undo, pace);
  }

  /** Writes one change, its revision and its audit entry, or throws an ApiError: 503 for a full or broken disk. */
  commit(commit: Commit): void {
    this.write([commit]);
  }

  /** Writes facts without a change, all or none; throws as `commit` does. */
  record(facts: readonly Fact[]): void {
    this.#transactFacts(facts, () => this.#writeFacts(facts));
  }

  /** With the secret key that one of the facts may bring. */
  #transactFacts(facts: readonly Fact[], work: () => void): void {
    let finish = () => {};
    this.#transactOrRefuse(() => {
      work();
      finish = this.secretKey.apply(facts);
    });
    finish();
  }

  /** The same for several changes or facts after each other: writes all of them or none. */
  write(entries: readonly (Commit | RecordedEntry)[]): void {
    const changes = entries.filter((entry) => "change" in entry);
    // SQLite would continue to write to the unlinked file.
    const problem = changes.length === 0 ? null : this.problem();
    if (problem !== null) throw new StorageError(`${problem}; nothing was changed`);
    if (changes.some(({ staged }) => staged)) this.#checkpointLater();
    const settings = changes.findLast(({ change }) => change.settings !== null)?.change.settings;
    const retained = settings?.retention.revisions ?? this.#retainedRevisions;
    const facts = entries.flatMap((entry) => entry.facts ?? []);
    this.#transactFacts(facts, () => {
      for (const entry of entries) {
        if ("change" in entry) this.#writeChange(entry, retained);
        this.#writeFacts(entry.facts ?? [], entry.mark);
      }
    });
    this.#retainedRevisions = retained;
  }

  #writeChange(commit: Commit, retained: number): void {
    const { revision, change, undo, entry, audit = [], staged } = commit;
    this.#tables.write(change, {
      staged: staged ?? null,
      ...(undo === undefined ? {} : { undo }),
    });
    const text = staged?.revision ?? this.#textOf(commit);
    this.#tables.writeRevision(revision, { entry, change: text }, retained);
    this.audit.append(audit);
  }

  /** The change for the table of revisions; one of discovery takes the place of the one before it. */
  #textOf({ isWhole, change, undo, entry }: Commit): string {
    if (isWhole === true) return "{}";
    const isMerged = entry.actor.startsWith(DISCOVERY) && undo !== undefined;
    const last = isMerged ? this.#tables.lastOf(entry.actor) : null;
    const before = last === null ? null : readChange(last.change);
    if (!isMerged || last === null || before?.undo == null)
      return JSON.stringify(toStoredChange(change, undo));
    this.#tables.forgetRevisions(last.revision);
    const whole = joined(
      { change: completed(before.change), undo: completed(before.undo) },
      { change, undo },
    );
    return JSON.stringify(toStoredChange(whole.change, whole.undo));
  }

  /** Replaces everything by what `commit` writes; revisions from its own on are forgotten. `facts` must also remove what is there. */
  replace(commit: Commit): void {
    this.#transactOrRefuse(() => {
      this.#tables.forgetRevisions(commit.revision);
      this.#writeChange(commit, this.#retainedRevisions);
      this.#writeFacts(commit.facts ?? [], commit.mark);
    });
  }

  get formerKeyId(): string | null {
    return this.secretKey.formerId;
  }

  /** The fleet that this data directory is part of; null: none. */
  fleetId(): string | null {
    return this.#tables.getMeta("fleet_id");
  }

  joinFleet(id: string): void {
    this.#tables.setMeta("fleet_id", id);
  }

  /** The data directory is that of a gateway without a fleet again. */
  leaveFleet(): void {
    this.#transact(() => {
      this.#tables.removeMeta("fleet_id");
      this.#tables.removeMeta("fleet_entry");
    });
  }

  /** Notes the last entry of the fleet's log that this node has. */
  setMark(mark: EntryMark): void {
    this.#tables.setMeta("fleet_entry", JSON.stringify(mark));
  }

  /** Whether this node of a fleet asks load balancers to send no requests. */
  isDrained(): boolean {
    return this.#tables.getMeta("drained") === "1";
  }

  /** All facts that a node needs that joins a fleet. */
  facts(): readonly Fact[] {
    return this.#facts.all();
  }

  /** The last entry of the fleet's log that was written; null: none. */
  mark(): EntryMark | null {
    const text = this.#tables.getMeta("fleet_entry");
    return text === null ? null : (JSON.parse(text) as EntryMark);
  }

  #transactOrRefuse(work: () => void): void {
    try {
      this.#transact(work);
    } catch (error) {
      throw toWriteError(error);
    }
  }

  #writeFacts(facts: readonly Fact[], mark?: EntryMark): void {
    for (const fact of facts)
      if (fact.kind === "node_drained") {
        if (fact.node_id === this.instanceId)
          this.#tables.setMeta("drained", fact.drained ? "1" : "");
      } else if (fact.kind !== "secret_key") this.#facts.write(fact);
    if (mark !== undefined) this.setMark(mark);
  }

  /**
   * SQLite writes a large change twice: to the -wal file in the transaction and, by default at its end, from there to the
   * database. The second write moves out of the commit, which blocks the thread.
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
      // The change is durable in the -wal file. SQLite retries with the next change, which reports the problem.
    }
  }

  /** Unlocks the data directory for another process; this one can still read, and write tables outside of the configuration. */
  letGo(): void {
    this.#lock.release();
  }

  /**
   * Locks the data directory again. Returns the change of the other process that this one cannot handle, and then nothing may
   * be written; null: unchanged. Throws a DirectoryInUseError while the other process holds the lock.
   */
  reclaim(revision: number): string | null {
    this.#lock.retake();
    if (schemaVersion(this.#database) !== migrations.length)
      return "the database was brought to a newer schema, which this version does not know";
    if (this.#tables.lastRevision() !== revision)
      return "the configuration in the database was changed by another process";
    // A newer version may have added fields: the next reader must validate every document.
    if (this.#tables.getMeta("document_format") !== documentFormat())
      this.#tables.setMeta("document_format", "");
    return null;
  }

  /** Closes the database that another process serves now. */
  leave(): void {
    if (this.#checkpoint !== null) clearTimeout(this.#checkpoint);
    this.#database.close();
  }

  close(): void {
    if (this.#checkpoint !== null) clearTimeout(this.#checkpoint);
    // SQLite does this only after all prepared statements are finalized, which shutdown does not wait for.
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
        // Rows are deleted and inserted again: check references once, at the end.
        this.#database.run("PRAGMA defer_foreign_keys = ON");
        write();
      })
      .immediate();
  }

  /** Metadata of a new database. */
  #identify(): void {
    this.#transact(() => {
      this.#tables.setMeta("instance_id", Bun.randomUUIDv7());
      this.#tables.setMeta("document_format", documentFormat());
    });
  }
}
