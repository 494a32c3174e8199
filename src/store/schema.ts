// The tables: columns for what is unique or referred to, one JSON document for the rest; knows nothing of who reads them.
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** Columns of every collection. `position` keeps the order of creation, which lists and ties are decided by. */
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
