// What differs between two snapshots, by identity; knows no thread that it is sent to.
import type { CollectionChange, Snapshot, SnapshotChange } from "./snapshot.ts";

/**
 * What turns `previous` into `next`; from null it is the whole of `next`. `consumers`: where those of `next` are, null when
 * they are those of `previous`.
 */
export function diff(
  previous: Snapshot | null,
  next: Snapshot,
  consumers: SnapshotChange["consumers"],
): SnapshotChange {
  return {
    base: previous?.revision ?? null,
    revision: next.revision,
    services: diffMaps(previous?.services, next.services),
    routes: diffMaps(previous?.routes, next.routes),
    listeners: diffMaps(previous?.listeners, next.listeners),
    streamRoutes: diffMaps(previous?.streamRoutes, next.streamRoutes),
    certificates: diffMaps(previous?.certificates, next.certificates),
    plugins: diffMaps(previous?.plugins, next.plugins),
    consumers,
    settings: previous?.settings === next.settings ? null : next.settings,
  };
}

/** Elements that are new or another object than before, and the ids that are gone. Equal maps cost nothing. */
export function diffMaps<T>(
  before: ReadonlyMap<string, T> | undefined,
  after: ReadonlyMap<string, T>,
): CollectionChange<T> {
  if (before === after) return { upserts: [], removals: [] };
  if (before === undefined) return { upserts: [...after.values()], removals: [] };
  const upserts: T[] = [];
  let known = 0;
  for (const [id, element] of after) {
    const old = before.get(id);
    if (old !== undefined) known++;
    if (old !== element) upserts.push(element);
  }
  if (known === before.size) return { upserts, removals: [] };
  return { upserts, removals: [...before.keys()].filter((id) => !after.has(id)) };
}
