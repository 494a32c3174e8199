// Writes routes to memory that all workers read, who index only their positions; knows no thread.
import type { Defaults } from "../model/compact.ts";
import { defaultsOf } from "../model/decode.ts";
import { type Route, routeInput } from "../model/route.ts";
import { Pace } from "../pace.ts";
import { encodeRoute, isRecordOf, routeKey, type RouteTable } from "../snapshot/route-records.ts";
import type { CollectionChange, StoredRoutes } from "../snapshot/snapshot.ts";
import { RecordStore } from "./record-store.ts";

/** Bytes of the record of a typical route. */
const TYPICAL_BYTES = 320;

export class RouteStore {
  readonly #records = new RecordStore();
  readonly #defaults: Defaults = defaultsOf(routeInput);

  /** All routes of the committed version. */
  whole(): StoredRoutes {
    const table = { records: this.#records.table, defaults: this.#defaults };
    return { table, upserts: this.#records.positions(), removals: [] };
  }

  /** Writes the difference to the committed version, in slices. */
  async write(
    { upserts, removals }: CollectionChange<Route>,
    pace = new Pace(),
  ): Promise<StoredRoutes> {
    const records = this.#records;
    records.rollback();
    if (upserts.length + removals.length === 0) return { table: null, upserts: [], removals: [] };
    records.begin({ additions: upserts.length, bytes: TYPICAL_BYTES });
    for (const id of removals) {
      this.#retire(id);
      if (pace.isDue()) await pace.rest();
    }
    const positions: number[] = [];
    for (const route of upserts) {
      this.#retire(route.id);
      positions.push(records.add([routeKey(route.id)], encodeRoute(route, this.#defaults)));
      if (pace.isDue()) await pace.rest();
    }
    const table: RouteTable = { records: records.next, defaults: this.#defaults };
    return { table, upserts: positions, removals };
  }

  /** The next change starts from the written version. */
  commit(): void {
    this.#records.commit();
  }

  /** Discards the written version. */
  rollback(): void {
    this.#records.rollback();
  }

  #retire(id: string): void {
    this.#records.retire(routeKey(id), (text) => isRecordOf(text, id));
  }
}
