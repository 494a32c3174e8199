// Single values of a node in the table of metadata; knows none of them.
import { eq } from "drizzle-orm";
import { meta } from "./schema.ts";
import type { TableContext } from "./table-context.ts";

export class MetaRows {
  readonly #context: TableContext;

  constructor(context: TableContext) {
    this.#context = context;
  }

  get(key: string): string | null {
    const row = this.#context.db.select().from(meta).where(eq(meta.key, key)).get();
    return row?.value ?? null;
  }

  set(key: string, value: string): void {
    this.#context.db
      .insert(meta)
      .values({ key, value })
      .onConflictDoUpdate({ target: meta.key, set: { value } })
      .run();
  }
}
