// Keeps routes in memory that all workers read: what a worker indexes is where they are; knows no thread.
import type { Defaults } from "../model/compact.ts";
import { defaultsOf } from "../model/decode.ts";
import { type Route, routeInput } from "../model/route.ts";
import { Pace } from "../pace.ts";
import { encodeRoute, isRecordOf, routeKey, type RouteTable } from "../snapshot/route-records.ts";
import type { CollectionChange, StoredRoutes } from "../snapshot/snapshot.ts";
import { RecordStore } from "./record-store.ts";

/** Bytes of the record of a usual route. */
const USUAL_BYTES = 320;

export class RouteStore {
  readonly #records = new RecordStore();
  readonly #defaults: Defaults = defaultsOf(routeInput);

  /** All routes of the version that was kept last. */
  whole(): StoredRoutes {
    const table = { records: this.#records.table, defaults: this.#defaults };
    return { table, upserts: this.#records.positions(), removals: [] };
  }

  /** Writes what differs from the version that was kept last, in slices. */
  async write(
    { upserts, removals }: CollectionChange<Route>,
    pace = new Pace(),
  ): Promise<StoredRoutes> {
    const records = this.#records;
    records.undo();
    if (upserts.length + removals.length === 0) return { table: null, upserts: [], removals: [] };
    records.begin({ additions: upserts.length, bytes: USUAL_BYTES });
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

  /** What was written is what the next change starts from. */
  keep(): void {
    this.#records.keep();
  }

  /** Takes back what was written. */
  undo(): void {
    this.#records.undo();
  }

  #retire(id: string): void {
    this.#records.retire(routeKey(id), (text) => isRecordOf(text, id));
  }
}
