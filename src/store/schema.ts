// The tables: columns for what is unique or referred to, one JSON document for the rest; knows nothing of who reads them.
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** Columns of every collection. `position` is the order of creation, which orders lists and breaks ties. */
const object = () => ({
  position: integer("position").primaryKey(),
  id: text("id").notNull().unique(),
  created_at: text("created_at").notNull(),
  updated_at: text("updated_at").notNull(),
  document: text("document", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
});

export const services = sqliteTable("services", { ...object(), name: text("name").unique() });

export const targets = sqliteTable(
  "targets",
  {
    ...object(),
    service_id: text("service_id")
      .notNull()
      .references(() => services.id),
    host: text("host").notNull(),
    port: integer("port"),
  },
  (table) => [
    uniqueIndex("targets_address").on(table.service_id, table.host, table.port),
    index("targets_service").on(table.service_id),
  ],
);

export const routes = sqliteTable("routes", { ...object(), name: text("name").unique() });

export const listeners = sqliteTable("listeners", { ...object(), name: text("name").unique() });

export const certificates = sqliteTable("certificates", {
  ...object(),
  name: text("name").notNull().unique(),
});

export const streamRoutes = sqliteTable("stream_routes", {
  ...object(),
  name: text("name").notNull().unique(),
});

export const acmeAccounts = sqliteTable("acme_accounts", {
  ...object(),
  name: text("name").notNull().unique(),
});

export const dnsProviders = sqliteTable("dns_providers", {
  ...object(),
  name: text("name").notNull().unique(),
});

export const applications = sqliteTable("applications", {
  ...object(),
  name: text("name").notNull().unique(),
});

export const alerts = sqliteTable("alerts", {
  ...object(),
  name: text("name").notNull().unique(),
});

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

export const consumers = sqliteTable("consumers", {
  ...object(),
  username: text("username").notNull().unique(),
  custom_id: text("custom_id").unique(),
});

export const credentials = sqliteTable(
  "credentials",
  {
    ...object(),
    consumer_id: text("consumer_id")
      .notNull()
      .references(() => consumers.id),
    /** Lookup key: its type with the hash of a key, or with its identifier. */
    lookup: text("lookup").notNull().unique(),
  },
  (table) => [index("credentials_consumer").on(table.consumer_id)],
);

/** Last use of credentials, written periodically. */
export const credentialUse = sqliteTable("credential_use", {
  credential_id: text("credential_id").primaryKey(),
  last_used_at: text("last_used_at").notNull(),
});

export const plugins = sqliteTable("plugins", { ...object(), label: text("label").unique() });

export const users = sqliteTable("users", {
  ...object(),
  /** With A to Z in lower case, because addresses are case-insensitive for A to Z. */
  email: text("email").notNull().unique(),
});

export const tokens = sqliteTable("tokens", {
  ...object(),
  name: text("name").notNull().unique(),
  token_hash: text("token_hash").notNull().unique(),
});

export const secrets = sqliteTable("secrets", {
  ...object(),
  name: text("name").notNull().unique(),
});

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
