// The tables: columns for what is unique or referred to, one JSON document for the rest; knows nothing of who reads them.
import {
  type AnySQLiteColumn,
  index,
  integer,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";
import type { Identity } from "../model/fields.ts";
import { type CollectionName, definitionOf, mapCollections } from "../model/gateway-config.ts";
import type { Column } from "../model/resource.ts";

/** Columns of every collection. `position` is the order of creation, which orders lists and breaks ties. */
const object = () => ({
  position: integer("position").primaryKey(),
  id: text("id").notNull().unique(),
  created_at: text("created_at").notNull(),
  updated_at: text("updated_at").notNull(),
  document: text("document", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
});

const plain = () => sqliteTable("", object());
/** The part that the tables of all collections have in common. */
export type CollectionTable = ReturnType<typeof plain>;

/** The table of a collection, from its definition. */
function tableOf(name: CollectionName): CollectionTable {
  const { columns, uniqueTogether = {} } = definitionOf(name);
  const own = Object.entries(columns).map(([column, facts]) => [column, columnOf(column, facts)]);
  const all = { ...object(), ...Object.fromEntries(own) };
  return sqliteTable(name, all, (table) => {
    const named = (column: string) => table[column] as AnySQLiteColumn;
    const together = Object.entries(uniqueTogether).map(([of, [first = "", ...rest]]) =>
      uniqueIndex(of).on(named(first), ...rest.map(named)),
    );
    const references = Object.entries(columns).flatMap(([column, { refersTo }]) =>
      refersTo === undefined
        ? []
        : [index(`${name}_${column.replace(/_id$/, "")}`).on(named(column))],
    );
    return [...together, ...references];
  }) as unknown as CollectionTable;
}

function columnOf(name: string, facts: Column<Identity>) {
  const { type, isNullable = false, isUnique = false, refersTo } = facts;
  const nullable = type === "integer" ? integer(name) : text(name);
  const column = isNullable ? nullable : nullable.notNull();
  const unique = isUnique ? column.unique() : column;
  return refersTo === undefined
    ? unique
    : unique.references((): AnySQLiteColumn => collectionTables[refersTo as CollectionName].id);
}

/** By the name of the collection. */
export const collectionTables = mapCollections(tableOf);

/** The ACME state of a certificate: attempts, the next one, the open order. */
export const acmeStates = sqliteTable("acme_states", {
  certificate_id: text("certificate_id").primaryKey(),
  document: text("document", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
});

/** Traffic statistics of a minute or an hour. */
export const trafficRollups = sqliteTable(
  "traffic_rollups",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    /** Seconds since 1970 at which it began. */
    at: integer("at").notNull(),
    /** Seconds: 60, 3600 or 86400. */
    span: integer("span").notNull(),
    /** `total`, `route`, `service` or `target`. */
    kind: text("kind").notNull(),
    /** Id of the object; empty for the total. */
    object_id: text("object_id").notNull(),
    document: text("document", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  },
  (table) => [
    uniqueIndex("traffic_rollups_key").on(table.span, table.at, table.kind, table.object_id),
  ],
);

/** Last use of credentials, written periodically. */
export const credentialUse = sqliteTable("credential_use", {
  credential_id: text("credential_id").primaryKey(),
  last_used_at: text("last_used_at").notNull(),
});

/** Which container has a host or a name of labels first: it keeps it while it exists. */
export const discoveryClaims = sqliteTable(
  "discovery_claims",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    /** `docker`, or `docker@node` in a fleet. */
    source: text("source").notNull(),
    kind: text("kind").notNull(),
    name: text("name").notNull(),
    holder: text("holder").notNull(),
    /** What makes two definitions of a name the same; empty: nothing does. */
    content: text("content").notNull(),
    /** RFC 3339, UTC; null: the holder exists. */
    gone_at: text("gone_at"),
  },
  (table) => [uniqueIndex("discovery_claims_key").on(table.source, table.kind, table.name)],
);

/** Single sign-on: one row, id 1. */
export const sso = sqliteTable("sso", {
  id: integer("id").primaryKey(),
  updated_at: text("updated_at").notNull(),
  document: text("document", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
});

/** Sessions. The table holds the SHA-256 of the cookie only. */
export const sessions = sqliteTable(
  "sessions",
  {
    id: text("id").primaryKey(),
    token_hash: text("token_hash").notNull().unique(),
    user_id: text("user_id").notNull(),
    /** `password` or `sso`. */
    method: text("method").notNull(),
    created_at: text("created_at").notNull(),
    expires_at: text("expires_at").notNull(),
    address: text("address").notNull(),
    user_agent: text("user_agent").notNull(),
  },
  (table) => [index("sessions_user").on(table.user_id)],
);

/** The second factor of users. */
export const totp = sqliteTable("totp", {
  user_id: text("user_id").primaryKey(),
  sealed_key: text("sealed_key").notNull(),
  /** Whether the user has confirmed it with a code; until then it is not required. */
  confirmed: integer("confirmed", { mode: "boolean" }).notNull(),
  /** The last time step whose code was used: that code and earlier ones are invalid. */
  last_step: integer("last_step").notNull(),
  /** SHA-256 of the unused recovery codes. */
  recovery_hashes: text("recovery_hashes", { mode: "json" }).$type<readonly string[]>().notNull(),
});

/** Last use of tokens, written periodically; `admin` is the admin token, others have their id. */
export const tokenUse = sqliteTable("token_use", {
  token_id: text("token_id").primaryKey(),
  last_used_at: text("last_used_at").notNull(),
});

/** The automation token: at most one row, id 1. */
export const adminToken = sqliteTable("admin_token", {
  id: integer("id").primaryKey(),
  token_hash: text("token_hash").notNull(),
  created_at: text("created_at").notNull(),
});

/** The audit log; rows are added and deleted when they are too old, never changed. */
export const audit = sqliteTable(
  "audit",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    at: text("at").notNull(),
    actor: text("actor").notNull(),
    /** `disabled`, `session`, `token`, `local` or `none`. */
    method: text("method").notNull(),
    address: text("address").notNull(),
    /** `create`, `update`, `delete`, `login` and so on. */
    action: text("action").notNull(),
    kind: text("kind").notNull(),
    object_id: text("object_id"),
    object_name: text("object_name"),
    /** `ok`, `refused` or `failed`. */
    result: text("result").notNull(),
    revision: integer("revision"),
    detail: text("detail", { mode: "json" }).$type<unknown>(),
  },
  (table) => [index("audit_at").on(table.at), index("audit_actor").on(table.actor)],
);

/** Failed sign-ins of the last minutes, for the throttle. */
export const loginFailures = sqliteTable(
  "login_failures",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    /** HMAC of the network or of the account. */
    key: text("key").notNull(),
    /** Milliseconds since 1970. */
    at: integer("at").notNull(),
  },
  (table) => [index("login_failures_at").on(table.at)],
);

/** One row, id 1. */
export const settings = sqliteTable("settings", {
  id: integer("id").primaryKey(),
  updated_at: text("updated_at").notNull(),
  document: text("document", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
});

export const revisions = sqliteTable("revisions", {
  revision: integer("revision").primaryKey(),
  at: text("at").notNull(),
  actor: text("actor").notNull(),
  summary: text("summary").notNull(),
  change: text("change", { mode: "json" }).$type<unknown>().notNull(),
});

/** Facts about the database itself, such as the id of this gateway. */
export const meta = sqliteTable("meta", {
  key: text("key").primaryKey(),
  value: text("value").notNull(),
});
