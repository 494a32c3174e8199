// The desired state in SQLite: opened once, loaded once, written one change at a time; knows nothing of how it is served.
import { Database } from "bun:sqlite";
import { desc, eq, lte, sql } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../log.ts";
import { decode } from "../model/decode.ts";
import { ApiError } from "../model/error.ts";
import type { ConfigChange, GatewayConfig } from "../model/gateway-config.ts";
import { type Listener, listenerInput } from "../model/listener.ts";
import { pathMatchOf, type Route, routeInput } from "../model/route.ts";
import { type Service, serviceInput } from "../model/service.ts";
import { type Settings, settingsInput } from "../model/settings.ts";
import { type Target, targetInput } from "../model/target.ts";
import { createCollection } from "./collection.ts";
import {
  createPrivateFile,
  type DirectoryLock,
  lockDirectory,
  prepareDirectory,
} from "./directory.ts";
import { StoreError, sqliteCode } from "./error.ts";
import { migrate } from "./migrations.ts";
import { listeners, meta, revisions, routes, services, settings, targets } from "./schema.ts";

export interface StoreOptions {
  readonly dataDir: string;
  readonly log: Log;
}

/** Who made a revision and what it did, in one line. */
export interface RevisionEntry {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  readonly summary: string;
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
  readonly entry: RevisionEntry;
}

/** The only writer of a data directory. Every method is synchronous: no transaction is ever open across an await. */
export class Store {
  readonly #database: Database;
  readonly #db: BunSQLiteDatabase;
  readonly #lock: DirectoryLock;
  readonly #collections: ReturnType<typeof createCollections>;
  readonly #statements: ReturnType<typeof prepareStatements>;
  #retainedRevisions = 1000;

  private constructor(database: Database, lock: DirectoryLock) {
    this.#database = database;
    this.#lock = lock;
    this.#db = drizzle(database);
    this.#collections = createCollections(this.#db);
    this.#statements = prepareStatements(this.#db);
  }

  /** Takes the data directory for this process; throws a StoreError with the reason when it cannot be used. */
  static open({ dataDir, log }: StoreOptions): Store {
    prepareDirectory(dataDir, log);
    const lock = lockDirectory(dataDir);
    try {
      return new Store(openDatabase(join(dataDir, "sluice.db"), log), lock);
    } catch (error) {
      lock.release();
      if (error instanceof StoreError) throw error;
      throw new StoreError(`database in ${dataDir}: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Whether nothing was ever committed: the caller commits the first configuration as revision 1. */
  isEmpty(): boolean {
    return this.#statements.lastRevision.get() === undefined;
  }

  /** The whole desired state. Documents pass through the model again, so fields added since have their defaults. */
  load(): StoredState {
    const stored = this.#statements.settings.get();
    const revision = this.#statements.lastRevision.get()?.revision;
    if (stored === undefined || revision === undefined)
      throw new StoreError("the database holds no configuration");
    const config: GatewayConfig = {
      services: this.#collections.services.read(),
      targets: this.#collections.targets.read(),
      routes: this.#collections.routes.read(),
      listeners: this.#collections.listeners.read(),
      settings: toSettings(stored),
    };
    this.#retainedRevisions = config.settings.retention.revisions;
    return { config, revision, instanceId: this.#instanceId() };
  }

  /** Writes one change, its revision and its entry, all or nothing; throws a 500 in words when it could not. */
  commit({ revision, change, entry }: Commit): void {
    const collections = this.#collections;
    const write = this.#database.transaction(() => {
      // Rows are deleted and inserted anew: references are compared once, at the end.
      this.#database.run("PRAGMA defer_foreign_keys = ON");
      const insertions = [
        collections.services.clear(change.services),
        collections.targets.clear(change.targets),
        collections.routes.clear(change.routes),
        collections.listeners.clear(change.listeners),
      ];
      for (const insert of insertions) insert();
      if (change.settings !== null) {
        const { updated_at, ...document } = change.settings;
        this.#statements.writeSettings.run({ updated_at, document });
      }
      this.#statements.writeRevision.run({ revision, ...entry, change });
      const retained = change.settings?.retention.revisions ?? this.#retainedRevisions;
      this.#statements.prune.run({ before: revision - retained });
    });
    try {
      write.immediate();
    } catch (error) {
      throw new ApiError(
        500,
        `the database could not be written: ${describe(error)}; nothing was changed`,
        { cause: error },
      );
    }
    if (change.settings !== null) this.#retainedRevisions = change.settings.retention.revisions;
  }

  close(): void {
    this.#database.close();
    this.#lock.release();
  }

  #instanceId(): string {
    this.#db
      .insert(meta)
      .values({ key: "instance_id", value: Bun.randomUUIDv7() })
      .onConflictDoNothing()
      .run();
    const row = this.#db.select().from(meta).where(eq(meta.key, "instance_id")).get();
    if (row === undefined) throw new StoreError("the database holds no instance id");
    return row.value;
  }
}

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
    const steps = migrate(database);
    if (steps > 0 && !isNew) log.info("the database was brought to the current schema", { steps });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function createCollections(db: BunSQLiteDatabase) {
  const named = (object: { readonly name: string | null }) => ({ name: object.name });
  return {
    services: createCollection<Service>(db, {
      table: services,
      word: "service",
      columns: named,
      columnNames: ["name"],
      decode: (document) => decode(serviceInput, document),
    }),
    targets: createCollection<Target>(db, {
      table: targets,
      word: "target",
      columns: ({ service_id, host, port }) => ({ service_id, host, port }),
      columnNames: ["service_id", "host", "port"],
      decode: (document) => decode(targetInput, document),
    }),
    routes: createCollection<Route>(db, {
      table: routes,
      word: "route",
      columns: named,
      columnNames: ["name"],
      decode: (document) => {
        const route = decode(routeInput, document);
        return { ...route, paths: route.paths.map(pathMatchOf) };
      },
    }),
    listeners: createCollection<Listener>(db, {
      table: listeners,
      word: "listener",
      columns: named,
      columnNames: ["name"],
      decode: (document) => decode(listenerInput, document),
    }),
  };
}

function prepareStatements(db: BunSQLiteDatabase) {
  const document = sql.placeholder("document");
  const updated_at = sql.placeholder("updated_at");
  return {
    settings: db.select().from(settings).where(eq(settings.id, 1)).prepare(),
    lastRevision: db
      .select({ revision: revisions.revision })
      .from(revisions)
      .orderBy(desc(revisions.revision))
      .limit(1)
      .prepare(),
    writeSettings: db
      .insert(settings)
      .values({ id: 1, updated_at, document })
      .onConflictDoUpdate({
        target: settings.id,
        set: { updated_at: sql`excluded.updated_at`, document: sql`excluded.document` },
      })
      .prepare(),
    writeRevision: db
      .insert(revisions)
      .values({
        revision: sql.placeholder("revision"),
        at: sql.placeholder("at"),
        actor: sql.placeholder("actor"),
        summary: sql.placeholder("summary"),
        change: sql.placeholder("change"),
      })
      .prepare(),
    prune: db
      .delete(revisions)
      .where(lte(revisions.revision, sql.placeholder("before")))
      .prepare(),
  };
}

function toSettings(row: { readonly updated_at: string; readonly document: unknown }): Settings {
  try {
    return { ...decode(settingsInput, row.document), updated_at: row.updated_at };
  } catch (error) {
    throw new StoreError(`stored settings: ${(error as Error).message}`, { cause: error });
  }
}

function describe(error: unknown): string {
  const code = sqliteCode(error);
  if (code === "SQLITE_FULL") return "the disk is full";
  if (code.startsWith("SQLITE_READONLY")) return "it is read-only";
  if (code.startsWith("SQLITE_BUSY")) return "another program holds it locked";
  if (code.startsWith("SQLITE_IOERR")) return "the disk reported an error";
  if (code.startsWith("SQLITE_CONSTRAINT")) return "the change contradicts what is stored";
  return "SQLite refused it";
}
