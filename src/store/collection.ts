// The table of one collection: reads all of it, writes changes; opens no transaction.
import type { Database } from "bun:sqlite";
import { asc, eq, getTableName, gt, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  definitionOf,
  largeFactsOf,
  type ResourceChange,
} from "../model/gateway-config.ts";
import { byAge, LayeredMap, MANY } from "../model/layered-map.ts";
import { PackedRows } from "../model/packed-rows.ts";
import type { IndexOf } from "../model/rows.ts";
import { PlainRows } from "../model/plain-rows.ts";
import { decodeRecord } from "../model/records.ts";
import { StoreError } from "./error.ts";
import { type CollectionTable, collectionTables } from "./schema.ts";

export interface Collection<T> {
  /**
   * All objects, oldest first. Validates documents that are not `trusted`, and throws a StoreError for an invalid one.
   * `ids`: interned ids of all collections, extended by this one.
   */
  read(trusted: boolean, ids: Map<string, string>): ReadonlyMap<string, T>;
  /**
   * Deletes every row of the change, so that two objects may swap names, and returns a function that inserts the new ones:
   * call it after all collections have deleted theirs. An existing object stays at its position.
   */
  clear(change: ResourceChange<T>, known: KnownRows): () => void;
}

/** Known facts about the rows of a change. */
export interface KnownRows {
  /** Whether no row has the id; false: unknown. */
  readonly isNew: (id: string) => boolean;
  /** The document of an object as JSON. */
  readonly documentOf: (object: Identity) => string;
}

/** The fields of an object without a separate column. */
export function documentOf(object: Identity): string {
  const { id: _, created_at, updated_at, ...document } = object;
  return JSON.stringify(document);
}

export function createCollection(
  db: BunSQLiteDatabase,
  name: CollectionName,
): Collection<Identity> {
  const { columns, word } = definitionOf(name);
  const columnNames = Object.keys(columns);
  const indexes = largeFactsOf(name)?.indexes as readonly IndexOf<Identity>[] | undefined;
  const { insert, remove, page } = prepareStatements(db, collectionTables[name], columnNames);
  return {
    read: (trusted, ids) => {
      const decode = trusted ? (document: unknown) => document as object : decodeRecord[name];
      // Packed rows share no values.
      const shared = indexes === undefined ? ids : null;
      function* objects(): Generator<Identity> {
        for (let after = 0; ;) {
          const rows = page().values({ after }) as unknown as StoredRow[];
          for (const row of rows) yield toObject({ word, decode, ids: shared }, row);
          const last = rows.at(-1);
          if (last === undefined) break;
          after = last[0];
        }
      }
      return toMap(objects(), indexes);
    },
    clear(change, known) {
      for (const id of change.removals) remove().run({ id });
      const before: [object: Identity, position: number][] = [];
      const added: Identity[] = [];
      for (const object of change.upserts) {
        const { id } = object;
        const position = known.isNew(id) ? null : (remove().get({ id })?.position ?? null);
        if (position === null) added.push(object);
        else before.push([object, position]);
      }
      const write = (object: Identity, position: number | null) => {
        const { id, created_at, updated_at } = object;
        insert().run(
          ...[position, id, created_at, updated_at, known.documentOf(object)],
          ...Object.values(columns).map(({ of }) => of(object)),
        );
      };
      return () => {
        // New rows last: SQLite numbers them after the highest number, which an old row may still need.
        for (const [object, position] of before) write(object, position);
        for (const object of added) write(object, null);
      };
    },
  };
}

/** The tables differ only in their additional columns. */
function prepareStatements(
  db: BunSQLiteDatabase,
  table: CollectionTable,
  columnNames: readonly string[],
) {
  const columns = ["position", "id", "created_at", "updated_at", "document"];
  const insert = lazily(() => prepareInsert(db, getTableName(table), [...columns, ...columnNames]));
  const remove = lazily(() =>
    db
      .delete(table)
      .where(eq(table.id, sql.placeholder("id")))
      .returning({ position: table.position })
      .prepare(),
  );
  const page = lazily(() =>
    db
      .select({
        position: table.position,
        id: table.id,
        created_at: table.created_at,
        updated_at: table.updated_at,
        document: table.document,
      })
      .from(table)
      .where(gt(table.position, sql.placeholder("after")))
      .orderBy(asc(table.position))
      .limit(PAGE)
      .prepare(),
  );
  return { insert, remove, page };
}

/** One prepared statement, without drizzle's overhead per row: a change may write 100,000 rows in one transaction. */
export function prepareInsert(db: BunSQLiteDatabase, table: string, columns: readonly string[]) {
  const names = columns.map((name) => `"${name}"`).join(", ");
  const values = columns.map(() => "?").join(", ");
  return clientOf(db).prepare<unknown, (string | number | null)[]>(
    `INSERT INTO "${table}" (${names}) VALUES (${values})`,
  );
}

/** The database below drizzle. */
const clientOf = (db: BunSQLiteDatabase) =>
  (db as BunSQLiteDatabase & { $client: Database }).$client;

/** Rows per read: reading all at once would need twice the memory of the objects. */
const PAGE = 1_000;

/** A statement that is prepared on first use: a start needs only a few of them. */
function lazily<T>(prepare: () => T): () => T {
  let prepared: T | null = null;
  return () => (prepared ??= prepare());
}

/** Only very large collections pack their objects. */
function toMap<T extends Identity>(
  objects: Iterable<T>,
  indexes: readonly IndexOf<T>[] | undefined,
): ReadonlyMap<string, T> {
  const first: T[] = [];
  let rows: PackedRows<T> | null = null;
  // By age, not by position: a restored object has its old creation time.
  let isSorted = true;
  let before: T | null = null;
  for (const object of objects) {
    if (before !== null && byAge(before, object) > 0) isSorted = false;
    before = object;
    if (indexes !== undefined && first.length === MANY) {
      rows = PackedRows.of(first, indexes);
      first.length = 0;
    }
    if (rows === null) first.push(object);
    else rows.add(object);
  }
  if (rows !== null && indexes !== undefined)
    return isSorted ? LayeredMap.ofRows(rows) : LayeredMap.of(rows.values(), indexes);
  if (!isSorted) first.sort(byAge);
  if (first.length >= MANY) return LayeredMap.ofRows(new PlainRows(first));
  return new Map(first.map((object) => [object.id, object]));
}

/** A raw row: with very many rows, creating objects takes longer than reading. */
type StoredRow = readonly [
  position: number,
  id: string,
  created_at: string,
  updated_at: string,
  document: string,
];

/** Shared by all empty lists, because objects are immutable. */
const EMPTY: readonly never[] = Object.freeze([]);

/** Interns ids and empty lists: with very many objects, copies of them are half of the memory. */
function shareParts<F extends object>(fields: F, ids: Map<string, string>): F {
  const members = fields as Record<string, unknown>;
  for (const name in members) {
    const value = members[name];
    if (Array.isArray(value)) {
      if (value.length === 0) members[name] = EMPTY;
    } else if (typeof value === "string" && name.endsWith("_id"))
      members[name] = ids.get(value) ?? value;
  }
  return fields;
}

function toObject(
  {
    word,
    decode,
    ids,
  }: {
    readonly word: string;
    readonly decode: (document: unknown) => object;
    /** Null: nothing is shared. */
    readonly ids: Map<string, string> | null;
  },
  [, id, created_at, updated_at, text]: StoredRow,
): Identity {
  try {
    const fields = decode(JSON.parse(text));
    ids?.set(id, id);
    return {
      id,
      ...(ids === null ? fields : shareParts(fields, ids)),
      created_at,
      updated_at: updated_at === created_at ? created_at : updated_at,
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StoreError(`stored ${word} ${id}: ${error.message}`, { cause: error });
  }
}
