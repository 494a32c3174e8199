// Sessions in their table: read at the start, written one by one; knows nothing of cookies or expiry.
import { asc, inArray } from "drizzle-orm";
import { MetaRows } from "./meta-rows.ts";
import { sessions } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

/** A row as it is stored. */
export type SessionRow = typeof sessions.$inferSelect & { readonly method: "password" | "sso" };

const ENDED = "sessions_ended";

export class SessionTable {
  readonly #context: TableContext;
  readonly #meta: MetaRows;

  constructor(context: TableContext) {
    this.#context = context;
    this.#meta = new MetaRows(context);
  }

  /** All rows, oldest first. */
  load(): SessionRow[] {
    const { db } = this.#context;
    const rows = db.select().from(sessions).orderBy(asc(sessions.created_at), asc(sessions.id));
    return rows.all() as SessionRow[];
  }

  /** Ids of ended sessions that other nodes do not know yet. */
  ended(): readonly string[] {
    return JSON.parse(this.#meta.get(ENDED) ?? "[]") as string[];
  }

  keepEnded(ids: readonly string[]): void {
    this.#meta.set(ENDED, JSON.stringify(ids));
  }

  /** Does nothing when it is there already. */
  insert(row: SessionRow): void {
    this.#context.transact(() =>
      this.#context.db.insert(sessions).values(row).onConflictDoNothing().run(),
    );
  }

  remove(ids: readonly string[]): void {
    this.#context.transact(() => {
      this.#context.db
        .delete(sessions)
        .where(inArray(sessions.id, [...ids]))
        .run();
    });
  }

  /** Ends every session of a user, without a running gateway. */
  removeOfUser(userId: string): void {
    this.#context.transact(() => {
      this.#context.db
        .delete(sessions)
        .where(inArray(sessions.user_id, [userId]))
        .run();
    });
  }
}
