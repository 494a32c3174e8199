// Purges responses that plugins have stored; knows no plugin and nothing of what they store.
import type { Purge } from "../../pdk/definition.ts";
import type { PluginSet } from "./plugin-set.ts";

/** `pluginId` null: all instances. Returns the number of purged responses. */
export function purge(
  { all }: PluginSet,
  { pluginId, which }: { readonly pluginId: string | null; readonly which: Purge },
): number {
  const one = pluginId === null ? undefined : all.get(pluginId);
  const runtimes = pluginId === null ? [...all.values()] : one === undefined ? [] : [one];
  return runtimes.reduce((sum, { handlers }) => sum + (handlers.purge?.(which) ?? 0), 0);
}
