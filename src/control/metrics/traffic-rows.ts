// Gives every route, stream route and listener in use its row for counting, and takes it back some time after it is gone; counts nothing.
import {
  NO_ROUTE_ROW,
  OTHER_ROW,
  type TrafficMetrics,
  type TrafficSnapshot,
} from "../../shared-memory/traffic-metrics.ts";
import {
  listenerSeriesKey,
  routeSeriesKey,
  streamSeriesKey,
} from "../../shared-memory/series-key.ts";
import { diffMaps, diffRoutes } from "../../snapshot/diff.ts";
import type { CollectionChange, Snapshot } from "../../snapshot/snapshot.ts";
import type { Clock } from "../../clock.ts";
import type { Rollout } from "../change.ts";

/** How long what was counted for something that is gone can still be read: several scrapes. */
const KEPT_MS = 300_000;

export type SeriesKind = "route" | "stream_route" | "listener" | "other" | "none";

/** Whose counts they are. The names are the present ones, or the last ones of what is gone. */
export interface SeriesOwner {
  readonly kind: SeriesKind;
  /** Of the route, stream route or listener; empty for `other` and `none`. */
  readonly id: string;
  readonly name: string;
  /** Empty when it has none. */
  readonly serviceId: string;
  readonly serviceName: string;
}

export interface CountedTraffic {
  readonly owner: SeriesOwner;
  readonly traffic: TrafficSnapshot;
}

/** Something that has a row, as it is found in a version of the configuration. */
interface Place {
  readonly kind: "route" | "stream_route" | "listener";
  readonly key: string;
  readonly id: string;
}

interface Entry {
  readonly place: Place;
  readonly row: number;
  /** When it went out of use, in milliseconds since the Unix epoch, and its last names; null: it is in use. */
  left: { readonly at: number; readonly owner: SeriesOwner } | null;
}

/** Everything without a row of its own counts as this: there are more than there are rows for. */
const OTHER: SeriesOwner = {
  kind: "other",
  id: "",
  name: "_other",
  serviceId: "",
  serviceName: "_other",
};
const NONE: SeriesOwner = {
  kind: "none",
  id: "",
  name: "_none",
  serviceId: "",
  serviceName: "_none",
};

export interface TrafficRowsOptions {
  readonly metrics: TrafficMetrics;
  readonly rollout: Rollout;
  readonly clock: Clock;
  /** What is served first. */
  readonly served: Snapshot;
}

/** Rows are made when a version is decided, before the workers look for them. Stands between the changes and the workers: every version passes through it. */
export class TrafficRows implements Rollout {
  readonly #options: TrafficRowsOptions;
  readonly #entries = new Map<string, Entry>();
  #served: Snapshot;
  #next: Snapshot | null = null;

  constructor(options: TrafficRowsOptions) {
    this.#options = options;
    this.#served = options.served;
    this.#claim(changedPlaces(null, options.served).after);
  }

  prepare(next: Snapshot) {
    this.sweep();
    this.#next = next;
    return this.#options.rollout.prepare(next);
  }

  async activate(revision: number): Promise<void> {
    const before = this.#served;
    this.#served = this.#next ?? before;
    this.#next = null;
    const changed = changedPlaces(before, this.#served);
    this.#claim(changed.after);
    try {
      await this.#options.rollout.activate(revision);
    } finally {
      this.#retire(changed.before, changed.after, before);
    }
  }

  discard(revision: number): Promise<void> {
    this.#next = null;
    return this.#options.rollout.discard(revision);
  }

  status() {
    return this.#options.rollout.status();
  }

  /** Everything that was counted, also for a short time of what is gone. */
  read(): CountedTraffic[] {
    this.sweep();
    const { metrics } = this.#options;
    const found = [...this.#entries.values()].map(({ place, row, left }) => ({
      owner: left?.owner ?? ownerOf(place, this.#served),
      traffic: metrics.read(row),
    }));
    return [
      ...found,
      { owner: NONE, traffic: metrics.read(NO_ROUTE_ROW) },
      { owner: OTHER, traffic: metrics.read(OTHER_ROW) },
    ];
  }

  /** Gives up the rows of what has been gone for long enough. */
  sweep(): void {
    const now = this.#options.clock.now();
    for (const [key, { left }] of this.#entries) {
      if (left === null || now - left.at < KEPT_MS) continue;
      this.#options.metrics.release(key);
      this.#entries.delete(key);
    }
  }

  #claim(places: readonly Place[]): void {
    for (const place of places) {
      const known = this.#entries.get(place.key);
      if (known !== undefined) {
        known.left = null;
        continue;
      }
      const row = this.#options.metrics.claim(place.key);
      if (row !== OTHER_ROW) this.#entries.set(place.key, { place, row, left: null });
    }
  }

  /** What was in `before`, in the version `was`, and is not in `after` is out of use from here on. */
  #retire(before: readonly Place[], after: readonly Place[], was: Snapshot): void {
    const kept = new Set(after.map(({ key }) => key));
    const at = this.#options.clock.now();
    for (const place of before) {
      const entry = kept.has(place.key) ? undefined : this.#entries.get(place.key);
      if (entry !== undefined) entry.left = { at, owner: ownerOf(place, was) };
    }
  }
}

/** Where two versions differ, as each of them has it. */
function changedPlaces(before: Snapshot | null, after: Snapshot) {
  const changed = { before: [] as Place[], after: [] as Place[] };
  const note = <P extends { readonly id: string }>(
    { upserts, removals }: CollectionChange<P>,
    old: ReadonlyMap<string, P> | undefined,
    toPlace: (plan: P) => Place,
  ) => {
    for (const plan of upserts) changed.after.push(toPlace(plan));
    if (old === undefined) return;
    for (const id of [...upserts.map((plan) => plan.id), ...removals]) {
      const plan = old.get(id);
      if (plan !== undefined) changed.before.push(toPlace(plan));
    }
  };
  const { routes, streamRoutes, listeners } = after;
  note(diffRoutes(before?.routes, routes), before?.routes, ({ id, service_id: service }) => ({
    ...{ kind: "route", id, key: routeSeriesKey(id, service) },
  }));
  note(
    diffMaps(before?.streamRoutes, streamRoutes),
    before?.streamRoutes,
    ({ id, route: { service_id: service } }) => ({
      ...{ kind: "stream_route", id, key: streamSeriesKey(id, service) },
    }),
  );
  note(diffMaps(before?.listeners, listeners), before?.listeners, ({ id }) => ({
    ...{ kind: "listener", id, key: listenerSeriesKey(id) },
  }));
  return changed;
}

function ownerOf({ kind, id }: Place, { routes, streamRoutes, listeners, services }: Snapshot) {
  const found = {
    route: () => routes.get(id),
    stream_route: () => streamRoutes.get(id)?.route,
    listener: () => listeners.get(id)?.listener,
  }[kind]();
  const serviceId = (found !== undefined && "service_id" in found && found.service_id) || "";
  const serviceName = services.get(serviceId)?.service.name ?? "";
  return { kind, id, name: found?.name ?? id, serviceId, serviceName };
}
