// The audit log in its table: rows are added, and deleted when they are too old or too many, never changed.
import { and, asc, count, gte, isNull, lt, lte, max, min, type SQL, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { AuditFilter, AuditRange, AuditRetention, AuditStore } from "../control/audit.ts";
import type { AuditEntry } from "../control/audit-entry.ts";
import { audit } from "./schema.ts";

/** A row to add, without the number that it gets. */
export type AuditRow = Omit<typeof audit.$inferInsert, "id">;

export class AuditTable implements AuditStore {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  /** Several rows are to be added inside a transaction. */
  append(rows: readonly AuditRow[]): void {
    for (const row of rows) this.#db.insert(audit).values(row).run();
  }

  prune({ notBefore, entries, withoutRevision }: AuditRetention): number {
    const before = this.#count();
    this.#db.delete(audit).where(lt(audit.at, notBefore)).run();
    this.#db
      .delete(audit)
      .where(lt(audit.id, newest(entries)))
      .run();
    const others = isNull(audit.revision);
    this.#db
      .delete(audit)
      .where(and(others, lt(audit.id, newest(withoutRevision, others))))
      .run();
    return before - this.#count();
  }

  range({ notBefore, entries }: AuditRetention): AuditRange | null {
    const found = this.#db
      .select({ first: min(audit.id), last: max(audit.id) })
      .from(audit)
      .where(and(gte(audit.at, notBefore), gte(audit.id, newest(entries))))
      .get();
    if (found === undefined || found.first === null || found.last === null) return null;
    return { first: found.first, last: found.last, notBefore };
  }

  page(filter: AuditFilter, { first, last, notBefore }: AuditRange, limit: number) {
    const found = this.#db
      .select()
      .from(audit)
      .where(
        and(
          gte(audit.id, first),
          lte(audit.id, last),
          gte(audit.at, notBefore),
          ...conditionsOf(filter),
        ),
      )
      .orderBy(asc(audit.id))
      .limit(limit)
      .all();
    const next = found.length < limit ? null : (found.at(-1)?.id ?? last) + 1;
    return { entries: found.map(({ id: _, ...entry }) => entry as AuditEntry), next };
  }

  #count(): number {
    return this.#db.select({ rows: count() }).from(audit).get()?.rows ?? 0;
  }
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
