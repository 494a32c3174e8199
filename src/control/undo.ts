// The reverse of a change, as a change; knows no store.
import {
  type CollectionName,
  type ConfigChange,
  type GatewayConfig,
  mapCollections,
  type ResourceChange,
  singletonNames,
} from "../model/gateway-config.ts";

/** The change from the configuration after `change` back to `base`. */
export function undoOf(change: ConfigChange, base: GatewayConfig): ConfigChange {
  const collections = mapCollections((name): ResourceChange<unknown> => {
    const { upserts, removals } = change[name];
    const objects: ReadonlyMap<string, unknown> = base[name];
    const written = upserts.map(({ id }) => id);
    return {
      upserts: [...written, ...removals].flatMap((id) => objects.get(id) ?? []),
      removals: written.filter((id) => !objects.has(id)),
    };
  });
  const singletons = singletonNames.map((name) => [
    name,
    change[name] === null ? null : base[name],
  ]);
  return {
    ...(collections as Pick<ConfigChange, CollectionName>),
    ...(Object.fromEntries(singletons) as Pick<ConfigChange, (typeof singletonNames)[number]>),
  };
}
