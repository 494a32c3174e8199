// Overrides of target health in a fleet, as one value in the table of metadata; knows no target.
import type { StoredOverride } from "../model/fact.ts";
import { MetaRows } from "./meta-rows.ts";
import type { TableContext } from "./table-context.ts";

const KEY = "health_overrides";

export class HealthOverrideRow {
  readonly #rows: MetaRows;

  constructor(context: TableContext) {
    this.#rows = new MetaRows(context);
  }

  /** By id of the target; some may have ended. */
  load(): ReadonlyMap<string, StoredOverride> {
    const text = this.#rows.get(KEY);
    return new Map(text === null ? [] : Object.entries(JSON.parse(text) as Overrides));
  }

  /** Null: removed. Forgets those that have ended. */
  put(targetId: string, override: StoredOverride | null): void {
    const now = new Date().toISOString();
    const kept = [...this.load()].filter(
      ([id, { until }]) => id !== targetId && (until === null || until > now),
    );
    const all = override === null ? kept : [...kept, [targetId, override] as const];
    this.#rows.set(KEY, JSON.stringify(Object.fromEntries(all)));
  }
}

type Overrides = Record<string, StoredOverride>;
