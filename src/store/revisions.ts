// The table of revisions: each with its change and the change that reverts it; knows no permission.
import { asc, desc, eq, gt, type SQL, sql } from "drizzle-orm";
import type { ConfigChange } from "../model/gateway-config.ts";
import { presentParts } from "../model/former-engines.ts";
import { revisions } from "./schema.ts";
import { unpack } from "./staged-change.ts";
import type { TableContext } from "./table-context.ts";
import type { RevisionEntry } from "./tables.ts";

export interface RevisionHead extends RevisionEntry {
  readonly revision: number;
}

/** The stored parts of a change; unchanged parts are absent. */
export type PartialChange = Partial<ConfigChange>;

export interface RevisionRow extends RevisionHead {
  readonly change: PartialChange;
  /** Reverts the change. Null for the first revision, and for those of older versions. */
  readonly undo: PartialChange | null;
}

/** The document of a revision. It contains its own reversal, so that no complete state is stored. */
export function toStoredChange(change: ConfigChange, undo?: ConfigChange): unknown {
  return { ...withoutEmpty(change), ...(undo === undefined ? {} : { undo: withoutEmpty(undo) }) };
}

/** Reads what `toStoredChange` has written. */
export function readChange(stored: unknown): Pick<RevisionRow, "change" | "undo"> {
  const { undo, ...change } = unpack(stored) as PartialChange & { undo?: PartialChange };
  return { change: presentParts(change), undo: undo === undefined ? null : presentParts(undo) };
}

/** Most changes affect only one collection. */
function withoutEmpty(change: ConfigChange): PartialChange {
  return Object.fromEntries(
    Object.entries(change).filter(
      ([, part]) =>
        part !== null && !("upserts" in part && part.upserts.length + part.removals.length === 0),
    ),
  );
}

export class RevisionTable {
  readonly #db: TableContext["db"];

  constructor({ db }: TableContext) {
    this.#db = db;
  }

  /** All retained revisions, oldest first, without their changes. */
  heads(): readonly RevisionHead[] {
    const { revision, at, actor, summary } = revisions;
    return this.#db
      .select({ revision, at, actor, summary })
      .from(revisions)
      .orderBy(asc(revision))
      .all();
  }

  /** Null when the revision is not retained. */
  get(revision: number): RevisionRow | null {
    return this.#rows(eq(revisions.revision, revision))[0] ?? null;
  }

  /** Numbers of the revisions that changed one of these parts of the configuration. */
  touching(parts: readonly string[]): ReadonlySet<number> {
    const members = sql.join(
      parts.map((part) => sql`json_type(${revisions.change}, ${`$.${part}`}) is not null`),
      sql` or `,
    );
    const found = this.#db
      .select({ revision: revisions.revision })
      .from(revisions)
      .where(members)
      .all();
    return new Set(found.map(({ revision }) => revision));
  }

  /** The revisions after `revision`, newest first, one at a time because they may be large. */
  *after(revision: number): Generator<RevisionRow> {
    const numbers = this.#db
      .select({ revision: revisions.revision })
      .from(revisions)
      .where(gt(revisions.revision, revision))
      .orderBy(desc(revisions.revision))
      .all();
    for (const each of numbers) yield* this.#rows(eq(revisions.revision, each.revision));
  }

  #rows(where: SQL | undefined): RevisionRow[] {
    return this.#db
      .select()
      .from(revisions)
      .where(where)
      .all()
      .map(({ change, ...head }) => ({ ...head, ...readChange(change) }));
  }
}
