// The state of ACME orders in its table, one document per certificate; knows no CA.
import { eq, sql } from "drizzle-orm";
import { acmeStates } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

export class AcmeStateTable {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  /** Of all certificates, by id. */
  load(): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
    const rows = this.#context.db.select().from(acmeStates).all();
    return new Map(rows.map(({ certificate_id: id, document }) => [id, document]));
  }

  /** Upserts the state. One statement, so that it may also run inside a transaction. */
  put(certificateId: string, document: Record<string, unknown>): void {
    this.#context.db
      .insert(acmeStates)
      .values({ certificate_id: certificateId, document })
      .onConflictDoUpdate({
        target: acmeStates.certificate_id,
        set: { document: sql`excluded.document` },
      })
      .run();
  }

  /** Does nothing when there is none. */
  remove(certificateId: string): void {
    this.#context.db.delete(acmeStates).where(eq(acmeStates.certificate_id, certificateId)).run();
  }
}
