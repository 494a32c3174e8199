// The root of the local CA among the metadata; knows nothing of certificates.
import type { StoredLocalCa } from "../model/fact.ts";
import { MetaRows } from "./meta-rows.ts";
import type { TableContext } from "./table-context.ts";

const KEY = "local_ca";

export class LocalCaRow {
  readonly #rows: MetaRows;

  constructor(context: TableContext) {
    this.#rows = new MetaRows(context);
  }

  /** Null before the first certificate. */
  load(): StoredLocalCa | null {
    return JSON.parse(this.#rows.get(KEY) ?? "null") as StoredLocalCa | null;
  }

  put(root: StoredLocalCa | null): void {
    this.#rows.set(KEY, JSON.stringify(root));
  }
}
