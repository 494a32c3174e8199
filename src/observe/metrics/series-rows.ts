// Assigns counted objects rows of the traffic metrics, and frees them some time after the object is deleted; counts nothing.
import type { Clock } from "../../clock.ts";
import {
  cacheSeriesKey,
  listenerSeriesKey,
  routeSeriesKey,
  streamSeriesKey,
  targetSeriesKey,
} from "../../shared-memory/series-key.ts";
import {
  NO_ROUTE_ROW,
  OTHER_ROW,
  type TrafficMetrics,
  type TrafficSnapshot,
} from "../../shared-memory/traffic-metrics.ts";
import { diffMaps, diffRoutes } from "../../snapshot/diff.ts";
import type { RolloutObserver, VersionStep } from "../../snapshot/rollout.ts";
import type { CollectionChange, Snapshot } from "../../snapshot/snapshot.ts";

/** How long counters of a deleted object stay readable: several scrapes. */
const RETENTION_MS = 300_000;

export type SeriesKind =
  "route" | "stream_route" | "listener" | "target" | "cache" | "other" | "none";

/** The owner of counters, with current names, or the last names of a deleted object. */
export interface SeriesOwner {
  readonly kind: SeriesKind;
  /** Id of the route, stream route, listener, target or plugin instance; empty for `other` and `none`. */
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

/** Owner of all objects that found no free row. */
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

/** An object that has a row. */
interface Counted {
  readonly kind: Exclude<SeriesKind, "other" | "none">;
  readonly key: string;
  readonly id: string;
}

/** Counted objects that differ between two versions, from each version. */
interface ChangedObjects {
  readonly before: readonly Counted[];
  readonly after: readonly Counted[];
}

const NO_CHANGES: ChangedObjects = { before: [], after: [] };

interface Row {
  readonly counted: Counted;
  readonly row: number;
  /** When its owner was deleted or disabled, in milliseconds since the Unix epoch, and its last names; null: in use. */
  retired: { readonly at: number; readonly owner: SeriesOwner } | null;
}

export interface SeriesRowsOptions {
  readonly metrics: TrafficMetrics;
  readonly clock: Clock;
  /** The first served version. */
  readonly served: Snapshot;
  /** `targets` have separate memory, so that many of them do not use up the rows of routes. */
  readonly of: "traffic" | "targets";
  /** Whether a plugin is a cache, whose instances have rows of their own. Default: none is. */
  readonly isCache?: (plugin: string) => boolean;
}

/** Claims rows after the commit of a version, before the workers look for them. */
export class SeriesRows implements RolloutObserver {
  readonly #options: SeriesRowsOptions;
  readonly #changed: (before: Snapshot | null, after: Snapshot) => ChangedObjects;
  readonly #rows = new Map<string, Row>();
  #served: Snapshot;
  #changes = NO_CHANGES;

  constructor(options: SeriesRowsOptions) {
    this.#options = options;
    this.#served = options.served;
    const { isCache = () => false } = options;
    this.#changed =
      options.of === "targets"
        ? changedTargets
        : (before, after) => changedTraffic(before, after, isCache);
    this.#claim(this.#changed(null, options.served).after);
  }

  beforeActivation({ before, after }: VersionStep): void {
    this.#sweep();
    this.#served = after;
    this.#changes = this.#changed(before, after);
    this.#claim(this.#changes.after);
  }

  afterActivation({ before }: VersionStep): void {
    this.#retire(this.#changes, before);
    this.#changes = NO_CHANGES;
  }

  /** All counters, for a short time also of deleted objects. */
  read(): CountedTraffic[] {
    this.#sweep();
    const { metrics, of } = this.#options;
    const found = [...this.#rows.values()].map(({ counted, row, retired }) => ({
      owner: retired?.owner ?? ownerOf(counted, this.#served),
      traffic: metrics.read(row),
    }));
    const others = { owner: OTHER, traffic: metrics.read(OTHER_ROW) };
    if (of === "targets") return [...found, others];
    return [...found, { owner: NONE, traffic: metrics.read(NO_ROUTE_ROW) }, others];
  }

  /** Frees the rows of deleted objects after the retention. */
  #sweep(): void {
    const now = this.#options.clock.now();
    for (const [key, { retired }] of this.#rows) {
      if (retired === null || now - retired.at < RETENTION_MS) continue;
      this.#options.metrics.release(key);
      this.#rows.delete(key);
    }
  }

  #claim(all: readonly Counted[]): void {
    for (const counted of all) {
      const known = this.#rows.get(counted.key);
      if (known !== undefined) {
        known.retired = null;
        continue;
      }
      const row = this.#options.metrics.claim(counted.key);
      if (row !== OTHER_ROW) this.#rows.set(counted.key, { counted, row, retired: null });
    }
  }

  #retire({ before, after }: ChangedObjects, last: Snapshot): void {
    const inUse = new Set(after.map(({ key }) => key));
    const at = this.#options.clock.now();
    for (const counted of before) {
      const row = inUse.has(counted.key) ? undefined : this.#rows.get(counted.key);
      if (row !== undefined) row.retired ??= { at, owner: ownerOf(counted, last) };
    }
  }
}

function changedTraffic(
  before: Snapshot | null,
  after: Snapshot,
  isCache: (plugin: string) => boolean,
): ChangedObjects {
  const { routes, streamRoutes, listeners, plugins } = after;
  return joined([
    changesOf(diffRoutes(before?.routes, routes), before?.routes, ({ id, service_id: service }) => [
      { kind: "route", id, key: routeSeriesKey(id, service) },
    ]),
    changesOf(
      diffMaps(before?.streamRoutes, streamRoutes),
      before?.streamRoutes,
      ({ id, route: { service_id: service } }) => [
        { kind: "stream_route", id, key: streamSeriesKey(id, service) },
      ],
    ),
    changesOf(diffMaps(before?.listeners, listeners), before?.listeners, ({ id }) => [
      { kind: "listener", id, key: listenerSeriesKey(id) },
    ]),
    changesOf(diffMaps(before?.plugins, plugins), before?.plugins, ({ id, name }) =>
      isCache(name) ? [{ kind: "cache", id, key: cacheSeriesKey(id) }] : [],
    ),
  ]);
}

const changedTargets = (before: Snapshot | null, after: Snapshot): ChangedObjects =>
  changesOf(diffMaps(before?.services, after.services), before?.services, ({ targets }) =>
    targets.map(({ id }) => ({ kind: "target", id, key: targetSeriesKey(id) })),
  );

function changesOf<P extends { readonly id: string }>(
  { upserts, removals }: CollectionChange<P>,
  old: ReadonlyMap<string, P> | undefined,
  countedIn: (plan: P) => readonly Counted[],
): ChangedObjects {
  const ids = [...upserts.map(({ id }) => id), ...removals];
  const gone = ids.flatMap((id) => old?.get(id) ?? []);
  return { before: gone.flatMap(countedIn), after: upserts.flatMap(countedIn) };
}

const joined = (parts: readonly ChangedObjects[]): ChangedObjects => ({
  before: parts.flatMap(({ before }) => before),
  after: parts.flatMap(({ after }) => after),
});

/** Targets have no names: statistics find theirs in the configuration. */
function ownerOf({ kind, id }: Counted, snapshot: Snapshot): SeriesOwner {
  const { routes, streamRoutes, listeners, services, plugins } = snapshot;
  if (kind === "cache")
    return { kind, id, name: plugins.get(id)?.label ?? id, serviceId: "", serviceName: "" };
  const found = {
    route: () => routes.get(id),
    stream_route: () => streamRoutes.get(id)?.route,
    listener: () => listeners.get(id)?.listener,
    target: () => undefined,
  }[kind]();
  const serviceId = (found !== undefined && "service_id" in found && found.service_id) || "";
  const serviceName = services.get(serviceId)?.service.name ?? "";
  return { kind, id, name: found?.name ?? id, serviceId, serviceName };
}
