// The plugins of a gateway by name, and when their code is read; knows none of them.
import type { AnyPlugin } from "./definition.ts";

/** Where the plugin of each name is, which its file exports by default. */
export type PluginFiles = Readonly<Record<string, () => Promise<{ readonly default: AnyPlugin }>>>;

/** Where a plugin is found when an instance is made of it; a map of all plugins is one. */
export interface PluginSource {
  get(name: string): AnyPlugin | undefined | Promise<AnyPlugin | undefined>;
}

/** Throws when two have one name. */
export function catalogueOf(plugins: readonly AnyPlugin[]): ReadonlyMap<string, AnyPlugin> {
  const byName = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  if (byName.size !== plugins.length) throw new Error("two plugins have one name");
  return byName;
}

/** All of them, in the order of the list. */
export async function loadPlugins(files: PluginFiles): Promise<readonly AnyPlugin[]> {
  const modules = await Promise.all(Object.values(files).map((load) => load()));
  return modules.map((module) => module.default);
}

/** Each when it is asked for: a thread that serves no plugin keeps the memory of none. */
export const lazyPlugins = (files: PluginFiles): PluginSource => ({
  get: async (name) => (Object.hasOwn(files, name) ? (await files[name]?.())?.default : undefined),
});
