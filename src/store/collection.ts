// One collection of the configuration in its table: read whole, written by change; knows no transaction of its own.
import type { Database } from "bun:sqlite";
import { asc, eq, getTableName, gt, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import type { ResourceChange } from "../model/gateway-config.ts";
import { byAge, LayeredMap, MANY } from "../model/layered-map.ts";
import { type IndexOf, PackedRows } from "../model/packed-rows.ts";
import { PlainRows } from "../model/plain-rows.ts";
import { StoreError } from "./error.ts";
import type {
  acmeAccounts,
  alerts,
  applications,
  certificates,
  consumers,
  credentials,
  dnsProviders,
  listeners,
  plugins,
  routes,
  secrets,
  services,
  targets,
  tokens,
  users,
  streamRoutes,
} from "./schema.ts";

type Table =
  | typeof services
  | typeof targets
  | typeof routes
  | typeof listeners
  | typeof certificates
  | typeof streamRoutes
  | typeof acmeAccounts
  | typeof dnsProviders
  | typeof applications
  | typeof alerts
  | typeof consumers
  | typeof credentials
  | typeof plugins
  | typeof users
  | typeof tokens
  | typeof secrets;
type Columns = Readonly<Record<string, string | number | null>>;

export interface Collection<T> {
  /**
   * All objects, oldest first. Documents that are not `trusted` are decoded, and thrown out with a StoreError if wrong.
   * `ids` holds those of all collections that were read before, and gets these.
   */
  read(trusted: boolean, ids: Map<string, string>): ReadonlyMap<string, T>;
  /**
   * Deletes every row that the change touches, so that two objects may swap names, and returns what inserts the new ones:
   * to be called once all collections are cleared. An object that existed keeps its position.
   */
  clear(change: ResourceChange<T>, known: KnownRows): () => void;
}

/** What is known of the rows of a change before they are written. */
export interface KnownRows {
  /** Whether there is no row with the id yet; false: perhaps there is. */
  readonly isNew: (id: string) => boolean;
  /** The document of an object as JSON. */
  readonly documentOf: (object: Identity) => string;
}

/** What of an object stands in no column of its own. */
export function documentOf(object: Identity): string {
  const { id: _, created_at, updated_at, ...document } = object;
  return JSON.stringify(document);
}

export interface CollectionOptions<T> {
  readonly table: Table;
  /** For messages: `service`. */
  readonly word: string;
  /** The columns beside those that all tables have. */
  readonly columns: (object: T) => Columns;
  readonly columnNames: readonly string[];
  /** Given for a collection that may be very large: what its objects are found by. */
  readonly indexes?: readonly IndexOf<T>[];
  /** A document as it was stored to one with every field that this program knows. */
  readonly decode: (document: unknown) => Omit<T, keyof Identity>;
}

export function createCollection<T extends Identity>(
  db: BunSQLiteDatabase,
  options: CollectionOptions<T>,
): Collection<T> {
  const { insert, remove, page } = prepareStatements(db, options);
  return {
    read: (trusted, ids) => {
      const { word, decode } = options;
      const toFields = trusted
        ? (document: unknown) => document as ReturnType<typeof decode>
        : decode;
      // Rows that are packed share nothing.
      const shared = options.indexes === undefined ? ids : null;
      function* objects(): Generator<T> {
        for (let after = 0; ;) {
          const rows = page().values({ after }) as unknown as StoredRow[];
          for (const row of rows) yield toObject({ word, decode: toFields, ids: shared }, row);
          const last = rows.at(-1);
          if (last === undefined) break;
          after = last[0];
        }
      }
      return toMap(objects(), options.indexes);
    },
    clear(change, known) {
      for (const id of change.removals) remove().run({ id });
      const before: [object: T, position: number][] = [];
      const added: T[] = [];
      for (const object of change.upserts) {
        const { id } = object;
        const position = known.isNew(id) ? null : (remove().get({ id })?.position ?? null);
        if (position === null) added.push(object);
        else before.push([object, position]);
      }
      const write = (object: T, position: number | null) => {
        const { id, created_at, updated_at } = object;
        const columns = options.columns(object);
        insert().run(
          ...[position, id, created_at, updated_at, known.documentOf(object)],
          ...options.columnNames.map((name) => columns[name] ?? null),
        );
      };
      return () => {
        // New rows last: SQLite numbers them after the highest, which must not be a number that an old row gets back.
        for (const [object, position] of before) write(object, position);
        for (const object of added) write(object, null);
      };
    },
  };
}

/** The tables differ only in columns that are given by name. */
function prepareStatements(
  db: BunSQLiteDatabase,
  options: Pick<CollectionOptions<never>, "table" | "columnNames">,
) {
  const table = options.table as typeof services;
  const columns = ["position", "id", "created_at", "updated_at", "document"];
  const insert = lazily(() =>
    prepareInsert(db, getTableName(table), [...columns, ...options.columnNames]),
  );
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

/** One prepared statement, without what drizzle does for each row: a change may write 100,000 in one transaction. */
export function prepareInsert(db: BunSQLiteDatabase, table: string, columns: readonly string[]) {
  const names = columns.map((name) => `"${name}"`).join(", ");
  const values = columns.map(() => "?").join(", ");
  return clientOf(db).prepare<unknown, (string | number | null)[]>(
    `INSERT INTO "${table}" (${names}) VALUES (${values})`,
  );
}

/** The database that drizzle was given. */
const clientOf = (db: BunSQLiteDatabase) =>
  (db as BunSQLiteDatabase & { $client: Database }).$client;

/** Rows that are read at a time: all of them at once would take twice the memory of what is made of them. */
const PAGE = 1_000;

/** A statement that is prepared when it is first run: a start runs few of those that there are for all collections. */
function lazily<T>(prepare: () => T): () => T {
  let prepared: T | null = null;
  return () => (prepared ??= prepare());
}

/** Only of a collection that may be very large are many objects not kept as they are. */
function toMap<T extends Identity>(
  objects: Iterable<T>,
  indexes: readonly IndexOf<T>[] | undefined,
): ReadonlyMap<string, T> {
  const first: T[] = [];
  let rows: PackedRows<T> | null = null;
  // By age and not by position: an object that was deleted and came back is as old as it was.
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

/** As SQLite gives it: with very many rows, an object for each takes longer than reading it. */
type StoredRow = readonly [
  position: number,
  id: string,
  created_at: string,
  updated_at: string,
  document: string,
];

/** Stands for every empty list: objects are never changed in place. */
const EMPTY: readonly never[] = Object.freeze([]);

/** One text for an id wherever it stands, and one empty list: with very many objects, half of their memory is such copies. */
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

function toObject<T>(
  {
    word,
    decode,
    ids,
  }: Pick<CollectionOptions<T>, "word" | "decode"> & {
    /** Null: nothing is shared. */
    readonly ids: Map<string, string> | null;
  },
  [, id, created_at, updated_at, text]: StoredRow,
): T {
  try {
    const fields = decode(JSON.parse(text));
    ids?.set(id, id);
    return {
      id,
      ...(ids === null ? fields : shareParts(fields, ids)),
      created_at,
      updated_at: updated_at === created_at ? created_at : updated_at,
    } as T;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StoreError(`stored ${word} ${id}: ${error.message}`, { cause: error });
  }
}
