// The routes of one version: found by the router, decoded on first use; knows no request.
import { decodeRoute, isRecordOf, routeKey, type RouteTable } from "../snapshot/route-records.ts";
import { type RecordReader, readerOf } from "../shared-memory/record-reader.ts";
import { type RouteRuntime, routeRuntime } from "./route-runtime.ts";
import type { RouteSubject } from "./router/compiled-match.ts";
import type { Router, RouterEntry } from "./router.ts";

/** Decoded routes in memory, at most. A worker may index 100,000; each takes kilobytes once it is decoded. */
const MAX_READY = 10_000;

/** Null: not decoded. */
export type RouteEntry = RouterEntry<RouteRuntime | null>;

/** The entries with a decoded route, oldest first; one for all versions of a worker. */
export class ReadyRoutes {
  readonly #most: number;
  /** Weak, so that routes of dropped versions can be collected with their plugins. */
  readonly #entries: WeakRef<RouteEntry>[] = [];
  #next = 0;

  constructor(most = MAX_READY) {
    this.#most = most;
  }

  /** Replaces the oldest decoded route. */
  add(entry: RouteEntry, runtime: RouteRuntime): void {
    const oldest = this.#entries[this.#next]?.deref();
    if (oldest !== undefined) oldest.value = null;
    entry.value = runtime;
    this.#entries[this.#next] = new WeakRef(entry);
    this.#next = (this.#next + 1) % this.#most;
  }
}

/** Reads the routes of one version from shared memory. */
export class RouteRecords {
  readonly #table: RouteTable;
  readonly #reader: RecordReader;

  /** `previous`: the routes of the version before; null: none. */
  constructor(table: RouteTable, previous: RouteRecords | null) {
    this.#table = table;
    this.#reader = readerOf(table.records, previous === null ? null : previous.#reader);
  }

  /** The route whose record begins at `position`. */
  at(position: number) {
    return decodeRoute(this.#reader.text(position), this.#table.defaults);
  }

  /** The route with the id, which must be one of the version. */
  byId(id: string) {
    const reader = this.#reader;
    const { version } = this.#table.records;
    const found = reader.find(routeKey(id), version, (record) =>
      isRecordOf(reader.text(record), id),
    );
    if (found === 0) throw new Error(`route ${id} has no record`);
    return this.at(found);
  }
}

/** The router of one version together with its routes. */
export class RouteIndex {
  readonly router: Router<RouteRuntime | null>;
  readonly records: RouteRecords | null;
  readonly #ready: ReadyRoutes;

  /** `records` null: there are no routes. */
  constructor(
    router: Router<RouteRuntime | null>,
    records: RouteRecords | null,
    ready: ReadyRoutes,
  ) {
    this.router = router;
    this.records = records;
    this.#ready = ready;
  }

  /** The route that matches the request, null when none does. */
  match(subject: RouteSubject): RouteRuntime | null {
    const entry = this.router.match(subject);
    return entry === null ? null : this.of(entry);
  }

  /** The route of an entry of this version. */
  of(entry: RouteEntry): RouteRuntime {
    return entry.value ?? this.#load(entry);
  }

  #load(entry: RouteEntry): RouteRuntime {
    if (this.records === null) throw new Error(`route ${entry.id} has no record`);
    const runtime = routeRuntime(this.records.byId(entry.id));
    this.#ready.add(entry, runtime);
    return runtime;
  }
}
