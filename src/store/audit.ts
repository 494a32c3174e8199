// The audit log in its table: rows are added, and deleted when they are too old or too many, never changed.
import { and, asc, count, desc, gte, isNull, lt, lte, max, min, type SQL, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type {
  AuditFilter,
  AuditPage,
  AuditRange,
  AuditRetention,
  AuditStore,
  AuditEntry,
} from "../model/audit-entry.ts";
import { prepareInsert } from "./collection.ts";
import { audit } from "./schema.ts";

/** A row to add, without its id. */
export type AuditRow = Omit<typeof audit.$inferInsert, "id">;

export class AuditTable implements AuditStore {
  readonly #db: BunSQLiteDatabase;

  readonly #insert: ReturnType<typeof prepareInsert>;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
    this.#insert = prepareInsert(db, "audit", [...columns, "detail"]);
  }

  /** Add several rows inside a transaction. */
  append(rows: readonly AuditRow[]): void {
    for (const row of rows) {
      const detail = (row.detail ?? null) === null ? null : JSON.stringify(row.detail);
      this.#insert.run(...columns.map((name) => row[name] ?? null), detail);
    }
  }

  prune(retention: AuditRetention): number {
    const before = this.#count();
    this.#db.delete(audit).where(lt(audit.at, retention.notBefore)).run();
    // Deletes entries without a change first, so that they do not displace changes.
    const firstOther = newest(retention.withoutRevision, isNull(audit.revision));
    this.#db
      .delete(audit)
      .where(and(isNull(audit.revision), lt(audit.id, firstOther)))
      .run();
    this.#db
      .delete(audit)
      .where(lt(audit.id, newest(retention.entries)))
      .run();
    return before - this.#count();
  }

  range({ notBefore, entries, withoutRevision }: AuditRetention): AuditRange | null {
    const [other] = this.#db.all<{ id: number }>(
      sql`select ${newest(withoutRevision, isNull(audit.revision))} as id`,
    );
    const firstOther = other?.id ?? 0;
    const kept = isRetained({ notBefore, firstOther });
    const found = this.#db
      .select({ first: min(audit.id), last: max(audit.id) })
      .from(audit)
      .where(and(kept, gte(audit.id, newest(entries, kept))))
      .get();
    if (found === undefined || found.first === null || found.last === null) return null;
    return { first: found.first, last: found.last, notBefore, firstOther };
  }

  page(filter: AuditFilter, range: AuditRange, limit: number): AuditPage {
    const found = this.#select(filter, range).orderBy(asc(audit.id)).limit(limit).all();
    const next = found.length < limit ? null : (found.at(-1)?.id ?? range.last) + 1;
    return { entries: found.map(entryOf), next };
  }

  latest(
    filter: AuditFilter,
    range: AuditRange,
    { limit, before }: { readonly limit: number; readonly before: number | null },
  ): AuditPage {
    const last = Math.min(range.last, (before ?? Number.MAX_SAFE_INTEGER) - 1);
    // One row more shows whether there are further ones.
    const found = this.#select(filter, { ...range, last })
      .orderBy(desc(audit.id))
      .limit(limit + 1)
      .all();
    const shown = found.slice(0, limit);
    const next = found.length > limit ? (shown.at(-1)?.id ?? null) : null;
    return { entries: shown.map(entryOf), next };
  }

  #select(filter: AuditFilter, range: AuditRange) {
    const isInside = and(gte(audit.id, range.first), lte(audit.id, range.last), isRetained(range));
    return this.#db
      .select()
      .from(audit)
      .where(and(isInside, ...conditionsOf(filter)));
  }

  #count(): number {
    return this.#db.select({ rows: count() }).from(audit).get()?.rows ?? 0;
  }
}

const entryOf = ({ id: _, ...entry }: typeof audit.$inferSelect) => entry as AuditEntry;

/** All but the number, in the order of the table. */
const columns = [
  "at",
  "actor",
  "method",
  "address",
  "action",
  "kind",
  "object_id",
  "object_name",
  "result",
  "revision",
] as const;

/** Whether an entry is within the retention: young enough and, without a change, among the newest. */
function isRetained({ notBefore, firstOther }: Pick<AuditRange, "notBefore" | "firstOther">): SQL {
  return sql`(${audit.at} >= ${notBefore} and (${audit.revision} is not null or ${audit.id} >= ${firstOther}))`;
}

/** Number of the oldest of the `entries` newest rows; 0 when there are no more than that. */
function newest(entries: number, among?: SQL): SQL {
  const where = among === undefined ? sql`` : sql` where ${among}`;
  return sql`coalesce((select ${audit.id} from ${audit}${where} order by ${audit.id} desc limit 1 offset ${entries - 1}), 0)`;
}

function conditionsOf(filter: AuditFilter): SQL[] {
  const conditions: SQL[] = [];
  if (filter.since !== undefined) conditions.push(gte(audit.at, filter.since));
  if (filter.until !== undefined) conditions.push(lt(audit.at, filter.until));
  const exact = {
    actor: audit.actor,
    kind: audit.kind,
    action: audit.action,
    object_id: audit.object_id,
    result: audit.result,
  } as const;
  for (const [name, column] of Object.entries(exact)) {
    const wanted = filter[name as keyof typeof exact];
    if (wanted !== undefined) conditions.push(sql`${column} = ${wanted}`);
  }
  if (filter.q !== undefined) {
    const text = sql`lower(${audit.actor} || ' ' || coalesce(${audit.object_name}, '') || ' ' || coalesce(${audit.object_id}, '') || ' ' || ${audit.address})`;
    conditions.push(sql`instr(${text}, lower(${filter.q})) > 0`);
  }
  return conditions;
}
