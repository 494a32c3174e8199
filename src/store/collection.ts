// One collection of the configuration in its table: read whole, written by change; knows no transaction of its own.
import { asc, eq, sql, gt } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import type { ResourceChange } from "../model/gateway-config.ts";
import { byAge, LayeredMap, MANY } from "../model/layered-map.ts";
import { type IndexOf, PackedRows } from "../model/packed-rows.ts";
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
  clear(change: ResourceChange<T>): () => void;
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
    clear(change) {
      for (const id of change.removals) remove().run({ id });
      const positions = change.upserts.map(({ id }) => remove().get({ id })?.position ?? null);
      return () => {
        const rows = change.upserts.map((object, index) => ({
          object,
          position: positions[index],
        }));
        // New rows last: SQLite numbers them after the highest, which must not be a number that an old row gets back.
        rows.sort((a, b) => Number(a.position === null) - Number(b.position === null));
        for (const { object, position } of rows) {
          const { id, created_at, updated_at, ...document } = object;
          const columns = options.columns(object);
          insert().run({ position, id, created_at, updated_at, document, ...columns });
        }
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
  const values: Record<string, unknown> = {};
  for (const column of [
    "position",
    "id",
    "created_at",
    "updated_at",
    "document",
    ...options.columnNames,
  ])
    values[column] = sql.placeholder(column);
  const insert = lazily(() =>
    db
      .insert(table)
      .values(values as typeof services.$inferInsert)
      .prepare(),
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
