// The inverse of changes, and several changes as one; knows no store.
import {
  type CollectionName,
  type ConfigChange,
  type GatewayConfig,
  mapCollections,
  type ResourceChange,
  singletonNames,
} from "./gateway-config.ts";

type Singletons = Pick<ConfigChange, (typeof singletonNames)[number]>;

/** What an inverse needs of the configuration before the change. */
type Base = Readonly<Record<CollectionName, Pick<ReadonlyMap<string, unknown>, "get" | "has">>> & {
  readonly [K in keyof Singletons]: Singletons[K];
};

/** The change from the result of `change` back to `base`. */
export function undoOf(change: ConfigChange, base: Base): ConfigChange {
  const collections = mapCollections((name): ResourceChange<unknown> => {
    const { upserts, removals } = change[name];
    const objects = base[name];
    const written = upserts.map(({ id }) => id);
    return {
      upserts: [...written, ...removals].flatMap((id) => objects.get(id) ?? []),
      removals: written.filter((id) => !objects.has(id)),
    };
  });
  return changeOf(collections, (name) => (change[name] === null ? null : base[name]));
}

/** The inverse of each of several changes that follow each other. */
export function undosOf(
  changes: readonly ConfigChange[],
  base: GatewayConfig,
): readonly ConfigChange[] {
  const written = mapCollections(() => new Map<string, unknown>());
  const singletons: Partial<Singletons> = {};
  const objectsOf = (name: CollectionName) => {
    const before: ReadonlyMap<string, unknown> = base[name];
    const get = (id: string) => (written[name].has(id) ? written[name].get(id) : before.get(id));
    return { get, has: (id: string) => get(id) !== undefined };
  };
  return changes.map((change) => {
    const undo = undoOf(change, { ...base, ...singletons, ...mapCollections(objectsOf) });
    for (const name of Object.keys(written) as CollectionName[]) {
      for (const object of change[name].upserts) written[name].set(object.id, object);
      for (const id of change[name].removals) written[name].set(id, undefined);
    }
    for (const name of singletonNames)
      if (change[name] !== null) Object.assign(singletons, { [name]: change[name] });
    return undo;
  });
}

/** One change with the effect of several that follow each other. */
export function combined(changes: readonly ConfigChange[]): ConfigChange {
  const collections = mapCollections((name): ResourceChange<unknown> => {
    const upserts = new Map<string, unknown>();
    const removals = new Set<string>();
    for (const change of changes) {
      for (const id of change[name].removals) {
        upserts.delete(id);
        removals.add(id);
      }
      for (const object of change[name].upserts) {
        upserts.set(object.id, object);
        removals.delete(object.id);
      }
    }
    return { upserts: [...upserts.values()], removals: [...removals] };
  });
  return changeOf(
    collections,
    (name) => changes.findLast((change) => change[name] !== null)?.[name] ?? null,
  );
}

/** A change whose unchanged parts are absent, with all parts. */
export function completed(change: Partial<ConfigChange>): ConfigChange {
  const collections = mapCollections(
    (name): ResourceChange<unknown> => change[name] ?? { upserts: [], removals: [] },
  );
  const singletons = singletonNames.map((name) => [name, change[name] ?? null]);
  return { ...collections, ...Object.fromEntries(singletons) } as ConfigChange;
}

/** A change with its inverse. */
interface Reversible {
  readonly change: ConfigChange;
  readonly undo: ConfigChange;
}

/** Two changes that follow each other as one, without the objects that came and went between the two. */
export function joined(first: Reversible, second: Reversible): Reversible {
  const change = combined([first.change, second.change]);
  const undo = combined([second.undo, first.undo]);
  const passing = mapCollections((name) => {
    const created = new Set(undo[name].removals);
    return new Set(change[name].removals.filter((id) => created.has(id)));
  });
  const without = (whole: ConfigChange) =>
    changeOf(
      mapCollections((name): ResourceChange<unknown> => ({
        upserts: whole[name].upserts,
        removals: whole[name].removals.filter((id) => !passing[name].has(id)),
      })),
      (name) => whole[name],
    );
  return { change: without(change), undo: without(undo) };
}

/** The change that turns `base` into the result of `whole`, which writes a configuration from nothing. */
export function differenceOf(base: GatewayConfig, whole: ConfigChange): ConfigChange {
  const collections = mapCollections((name): ResourceChange<unknown> => {
    const before: ReadonlyMap<string, unknown> = base[name];
    const kept = new Set(whole[name].upserts.map(({ id }) => id));
    return {
      upserts: whole[name].upserts.filter(
        (object) => !Bun.deepEquals(before.get(object.id), object),
      ),
      removals: [...before.keys()].filter((id) => !kept.has(id)),
    };
  });
  return changeOf(collections, (name) =>
    Bun.deepEquals(base[name], whole[name]) ? null : whole[name],
  );
}

function changeOf(
  collections: Record<CollectionName, ResourceChange<unknown>>,
  singleton: (name: (typeof singletonNames)[number]) => unknown,
): ConfigChange {
  return {
    ...(collections as Pick<ConfigChange, CollectionName>),
    ...(Object.fromEntries(singletonNames.map((name) => [name, singleton(name)])) as Singletons),
  };
}
