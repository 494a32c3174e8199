// The difference of two snapshots, by identity; knows no thread.
import type { Identity } from "../model/fields.ts";
import { LayeredMap } from "../model/layered-map.ts";
import type { Route } from "../model/route.ts";
import type {
  CollectionChange,
  LargeChange,
  PluginPlan,
  Snapshot,
  SnapshotChange,
  StoredRoutes,
} from "./snapshot.ts";

/** Parts of a change in memory that all workers read. */
export interface StoredParts {
  readonly routes: StoredRoutes;
  /** Null when unchanged. */
  readonly consumers: SnapshotChange["consumers"];
  /** The plan of an instance with its store and its feed. */
  readonly withShared: (plan: PluginPlan) => PluginPlan;
}

/** The change from `previous` to `next`; from null it is the whole of `next`. */
export function diff(
  previous: Snapshot | null,
  next: Snapshot,
  { routes, consumers, withShared }: StoredParts,
): SnapshotChange {
  const plugins = diffMaps(previous?.plugins, next.plugins);
  return {
    base: previous?.revision ?? null,
    revision: next.revision,
    services: diffMaps(previous?.services, next.services),
    routes: { upserts: routes.upserts, removals: routes.removals },
    routeTable: routes.table,
    listeners: diffMaps(previous?.listeners, next.listeners),
    streamRoutes: diffMaps(previous?.streamRoutes, next.streamRoutes),
    certificates: diffMaps(previous?.certificates, next.certificates),
    plugins: { upserts: plugins.upserts.map(withShared), removals: plugins.removals },
    consumers,
    settings: previous?.settings === next.settings ? null : next.settings,
  };
}

/** Elements that are new or a different object, and the removed ids. Identical maps cost nothing. */
export function diffMaps<T>(
  before: ReadonlyMap<string, T> | undefined,
  after: ReadonlyMap<string, T>,
): CollectionChange<T> {
  if (before === after) return { upserts: [], removals: [] };
  if (before === undefined) return { upserts: [...after.values()], removals: [] };
  const known = differences.get(after);
  if (known?.before.deref() === before) return known.change as CollectionChange<T>;
  const change = written(before, after) ?? inStep(before, after) ?? byLookup(before, after);
  differences.set(after, { before: new WeakRef(before), change });
  return change;
}

/** The same for routes as workers see them: without disabled ones. */
export function diffRoutes(
  before: ReadonlyMap<string, Route> | undefined,
  after: ReadonlyMap<string, Route>,
): CollectionChange<Route> {
  const { upserts, removals } = diffMaps(before, after);
  const isOn = upserts.every(({ enabled }) => enabled);
  const off = isOn ? [] : upserts.filter(({ enabled }) => !enabled).map(({ id }) => id);
  return {
    upserts: isOn ? upserts : upserts.filter(({ enabled }) => enabled),
    removals: [...removals, ...off].filter((id) => before?.get(id)?.enabled === true),
  };
}

/** The changes that the map itself recorded; null: it was not derived from `before`. */
function written<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): CollectionChange<T> | null {
  if (!(after instanceof LayeredMap)) return null;
  return (after as unknown as LayeredMap<T & Identity>).changesSince(
    before as ReadonlyMap<string, T & Identity>,
  );
}

/** Cache of the last difference of each map: several parts need the same one. */
const differences = new WeakMap<
  object,
  { readonly before: WeakRef<object>; readonly change: CollectionChange<unknown> }
>();

/**
 * Walks both maps side by side and looks up only what differs: a change among 100,000 elements needs no 100,000 lookups. Null
 * when common elements are not in the same order.
 */
function inStep<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): CollectionChange<T> | null {
  const upserts: T[] = [];
  const removals: string[] = [];
  const olds = before.entries();
  let old = olds.next();
  for (const [id, element] of after) {
    while (!old.done && old.value[0] !== id && !after.has(old.value[0])) {
      removals.push(old.value[0]);
      old = olds.next();
    }
    if (!old.done && old.value[0] === id) {
      if (old.value[1] !== element) upserts.push(element);
      old = olds.next();
    } else if (before.has(id)) return null;
    else upserts.push(element);
  }
  for (; !old.done; old = olds.next()) removals.push(old.value[0]);
  return { upserts, removals };
}

function byLookup<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): CollectionChange<T> {
  const upserts = [...after].filter(([id, element]) => before.get(id) !== element);
  return {
    upserts: upserts.map(([, element]) => element),
    removals: [...before.keys()].filter((id) => !after.has(id)),
  };
}

/** The same for very many objects, which are created one by one, and where equal ones need not be identical. */
export function diffLarge<T extends Identity>(
  before: ReadonlyMap<string, T> | undefined,
  after: ReadonlyMap<string, T>,
): LargeChange<T> {
  if (before === undefined) {
    const all = { length: after.size, [Symbol.iterator]: () => after.values() };
    return { isWhole: true, upserts: all, removals: [] };
  }
  const isLayered = before instanceof LayeredMap || after instanceof LayeredMap;
  if (before === after || !isLayered) return { isWhole: false, ...diffMaps(before, after) };
  return { isWhole: false, ...(written(before, after) ?? byContent(before, after)) };
}

function byContent<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): CollectionChange<T> {
  const upserts: T[] = [];
  for (const [id, element] of after)
    if (!Bun.deepEquals(before.get(id), element)) upserts.push(element);
  return { upserts, removals: [...before.keys()].filter((id) => !after.has(id)) };
}
