// Traffic statistics by minute and hour in their table; knows nothing of the counters.
import { and, asc, eq, gt, gte, lt, lte, or, sql } from "drizzle-orm";
import type {
  RollupDocument,
  RollupKey,
  RollupRow,
  RollupRows,
  RollupStore,
} from "../model/rollup.ts";
import { trafficRollups } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

export class RollupTable implements RollupStore {
  readonly #context: TableContext;
  readonly #insert: Insert;

  constructor(context: TableContext) {
    this.#context = context;
    this.#insert = prepareInsert(context.db);
  }

  transact(work: (rows: RollupRows) => void): void {
    const { db, transact } = this.#context;
    transact(() => work(rowsOf(db, this.#insert)));
  }

  range(
    { span, kind, object_id }: Parameters<RollupStore["range"]>[0],
    { from, to }: Parameters<RollupStore["range"]>[1],
  ): RollupRow[] {
    const { at, document } = trafficRollups;
    const found = this.#context.db
      .select({ at, object_id: trafficRollups.object_id, document })
      .from(trafficRollups)
      .where(
        and(
          eq(trafficRollups.span, span),
          gte(at, from),
          lte(at, to),
          eq(trafficRollups.kind, kind),
          object_id === undefined ? undefined : eq(trafficRollups.object_id, object_id),
        ),
      )
      .orderBy(asc(at))
      .all();
    return found.map((row) => ({ ...row, span, kind, document: toRollup(row.document) }));
  }
}

type Insert = ReturnType<typeof prepareInsert>;

/** Prepared once, because it runs for each object every minute. */
function prepareInsert(db: TableContext["db"]) {
  const { span, at, kind, object_id } = trafficRollups;
  return db
    .insert(trafficRollups)
    .values({
      span: sql.placeholder("span"),
      at: sql.placeholder("at"),
      kind: sql.placeholder("kind"),
      object_id: sql.placeholder("object_id"),
      document: sql.placeholder("document"),
    })
    .onConflictDoUpdate({
      target: [span, at, kind, object_id],
      set: { document: sql`excluded.document` },
    })
    .prepare();
}

const toRollup = (document: Record<string, unknown>) => document as unknown as RollupDocument;

function rowsOf(db: TableContext["db"], insert: Insert): RollupRows {
  const placed = ({ span, at, kind }: Omit<RollupKey, "object_id">) =>
    and(eq(trafficRollups.span, span), eq(trafficRollups.at, at), eq(trafficRollups.kind, kind));
  return {
    at(place) {
      const found = db
        .select({ id: trafficRollups.object_id, document: trafficRollups.document })
        .from(trafficRollups)
        .where(placed(place))
        .all();
      return new Map(found.map(({ id, document }) => [id, toRollup(document)]));
    },
    put: ({ document, ...key }) => void insert.run({ ...key, document: { ...document } }),
    prune(span, { from, to }) {
      db.delete(trafficRollups)
        .where(
          and(
            eq(trafficRollups.span, span),
            or(lt(trafficRollups.at, from), gt(trafficRollups.at, to)),
          ),
        )
        .run();
    },
  };
}
