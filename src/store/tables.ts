// The tables of the configuration: reads all of it, writes changes; knows no file, no lock and no transaction.
import { desc, eq, gte, lte, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { ApiError } from "../model/error.ts";
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  type GatewayConfig,
  mapCollections,
  type ResourceChange,
} from "../model/gateway-config.ts";
import { type Identity, withoutForm } from "../model/fields.ts";
import type { Settings } from "../model/settings.ts";
import type { Sso } from "../model/sso.ts";
import { type Collection, createCollection, documentOf, prepareInsert } from "./collection.ts";
import type { StagedChange } from "./staged-change.ts";
import { StoreError } from "./error.ts";
import { decodeRecord, recordSchemas } from "../model/records.ts";
import { meta, revisions, settings, sso } from "./schema.ts";

/** Time, actor and summary of a revision. */
export interface RevisionEntry {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  readonly summary: string;
}

/** A key of the table `meta`. */
export type MetaKey = "instance_id" | "document_format" | "fleet_entry" | "fleet_id" | "drained";

/** Change this text when a column is derived from its document in another way. */
const COLUMNS = "e-mail addresses with A to Z in lower case";

/**
 * Changes with every schema. Documents written with the current value need no validation, which would be most of the time of
 * a start with many routes.
 */
export const documentFormat = (): string =>
  Bun.hash(JSON.stringify([recordSchemas, COLUMNS], withoutForm)).toString(36);

export class Tables {
  readonly #collections: Readonly<Record<CollectionName, Collection<Identity>>>;
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(db: BunSQLiteDatabase) {
    this.#collections = mapCollections((name) => createCollection(db, name));
    this.#statements = prepareStatements(db);
  }

  /** Null before the first commit. */
  lastRevision(): number | null {
    return this.#statements.lastRevision.get()?.revision ?? null;
  }

  /** Without `trusted`, the model validates every document and adds defaults for newer fields. */
  read({ trusted }: { readonly trusted: boolean }): GatewayConfig {
    const row = this.#statements.settings.get();
    if (row === undefined) throw new StoreError("the database holds no settings");
    const ids = new Map<string, string>();
    const collections = mapCollections((name) => this.#collections[name].read(trusted, ids));
    return {
      ...(collections as unknown as Pick<GatewayConfig, CollectionName>),
      settings: toSettings(row),
      sso: toSso(this.#statements.sso.get(), row.updated_at),
    };
  }

  /** Needs deferred foreign keys, because it deletes and inserts rows. `undo`: reverts the change, if known. */
  write(
    change: ConfigChange,
    {
      staged = null,
      undo,
    }: { readonly staged?: StagedChange | null; readonly undo?: ConfigChange } = {},
  ): void {
    const insertions = collectionNames.map((name) => {
      const added = new Set(undo?.[name].removals);
      return this.#collections[name].clear(change[name] as ResourceChange<Identity>, {
        isNew: (id) => added.has(id),
        documentOf: (object) => staged?.documents.get(object) ?? documentOf(object),
      });
    });
    for (const insert of insertions) insert();
    const { writeSettings, writeSso } = this.#statements;
    for (const [value, write] of [
      [change.settings, writeSettings],
      [change.sso, writeSso],
    ] as const) {
      if (value === null) continue;
      const { updated_at, ...document } = value;
      write.run({ updated_at, document });
    }
  }

  /** Adds a revision, with `change` as JSON, and deletes all but the last `retained` ones. */
  writeRevision(
    revision: number,
    { entry, change }: { readonly entry: RevisionEntry; readonly change: string },
    retained: number,
  ): void {
    const { at, actor, summary } = entry;
    this.#statements.writeRevision.run(revision, at, actor, summary, change);
    this.#statements.prune.run({ retained });
  }

  /** The last revision with its stored change, if this actor made it; null: another one did. */
  lastOf(actor: string): { readonly revision: number; readonly change: unknown } | null {
    const last = this.#statements.lastEntry.get();
    return last?.actor === actor ? { revision: last.revision, change: last.change } : null;
  }

  /** Removes the revisions from `revision` on. */
  forgetRevisions(revision: number): void {
    this.#statements.forgetRevisions.run({ revision });
  }

  getMeta(key: MetaKey): string | null {
    return this.#statements.getMeta.get({ key })?.value ?? null;
  }

  setMeta(key: MetaKey, value: string): void {
    this.#statements.setMeta.run({ key, value });
  }

  removeMeta(key: MetaKey): void {
    this.#statements.removeMeta.run({ key });
  }
}

/** Writes the row of a single-row table. */
function writeOnly(db: BunSQLiteDatabase, table: typeof settings | typeof sso) {
  return db
    .insert(table)
    .values({
      id: 1,
      updated_at: sql.placeholder("updated_at"),
      document: sql.placeholder("document"),
    })
    .onConflictDoUpdate({
      target: table.id,
      set: { updated_at: sql`excluded.updated_at`, document: sql`excluded.document` },
    })
    .prepare();
}

function prepareStatements(db: BunSQLiteDatabase) {
  const [key, value] = [sql.placeholder("key"), sql.placeholder("value")];
  return {
    getMeta: db.select().from(meta).where(eq(meta.key, key)).prepare(),
    setMeta: db
      .insert(meta)
      .values({ key, value })
      .onConflictDoUpdate({ target: meta.key, set: { value: sql`excluded.value` } })
      .prepare(),
    removeMeta: db.delete(meta).where(eq(meta.key, key)).prepare(),
    settings: db.select().from(settings).where(eq(settings.id, 1)).prepare(),
    sso: db.select().from(sso).where(eq(sso.id, 1)).prepare(),
    lastRevision: db
      .select({ revision: revisions.revision })
      .from(revisions)
      .orderBy(desc(revisions.revision))
      .limit(1)
      .prepare(),
    lastEntry: db.select().from(revisions).orderBy(desc(revisions.revision)).limit(1).prepare(),
    writeSettings: writeOnly(db, settings),
    writeSso: writeOnly(db, sso),
    writeRevision: prepareInsert(db, "revisions", ["revision", "at", "actor", "summary", "change"]),
    forgetRevisions: db
      .delete(revisions)
      .where(gte(revisions.revision, sql.placeholder("revision")))
      .prepare(),
    prune: db
      .delete(revisions)
      .where(
        // By rows, because revisions of discovery that follow each other are one row.
        lte(
          revisions.revision,
          db
            .select({ revision: revisions.revision })
            .from(revisions)
            .orderBy(desc(revisions.revision))
            .limit(1)
            .offset(sql.placeholder("retained")),
        ),
      )
      .prepare(),
  };
}

function toSettings(row: { readonly updated_at: string; readonly document: unknown }): Settings {
  try {
    return { ...decodeRecord.settings(row.document), updated_at: row.updated_at };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StoreError(`stored settings: ${error.message}`, { cause: error });
  }
}

/** Databases from before single sign-on have no row for it. */
function toSso(
  row: { readonly updated_at: string; readonly document: unknown } | undefined,
  at: string,
): Sso {
  try {
    return { ...decodeRecord.sso(row?.document ?? {}), updated_at: row?.updated_at ?? at };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StoreError(`stored sso: ${error.message}`, { cause: error });
  }
}
