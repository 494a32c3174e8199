// Failed sign-ins of the last minutes in their table, at most 20,000; knows no limit and no address.
import { asc, lte, or, sql } from "drizzle-orm";
import type { LoginFailure } from "../model/fact.ts";
import { loginFailures } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

/** The memory of the throttle holds as many addresses and accounts. */
const MAX_ROWS = 20_000;

export class LoginFailureTable {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  /** Those after `since`, the oldest first. */
  load(since: number): readonly LoginFailure[] {
    const { key, at } = loginFailures;
    const rows = this.#context.db.select({ key, at }).from(loginFailures).orderBy(asc(at)).all();
    return rows.filter((row) => row.at > since);
  }

  /** Stores failures, and deletes those until `since` and the oldest beyond the limit. */
  add(failures: readonly LoginFailure[], since: number): void {
    const { id, at } = loginFailures;
    const isBeyond = sql`${id} <= (SELECT max(id) FROM login_failures) - ${MAX_ROWS}`;
    this.#context.transact(() => {
      const { db } = this.#context;
      for (const { key, at: time } of failures)
        db.insert(loginFailures).values({ key, at: time }).run();
      db.delete(loginFailures)
        .where(or(lte(at, since), isBeyond))
        .run();
    });
  }
}
