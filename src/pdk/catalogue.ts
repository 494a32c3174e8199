// The plugins of a gateway by name; knows none of them.
import type { AnyPlugin } from "./definition.ts";

/** Throws when two have one name. */
export function catalogueOf(plugins: readonly AnyPlugin[]): ReadonlyMap<string, AnyPlugin> {
  const byName = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  if (byName.size !== plugins.length) throw new Error("two plugins have one name");
  return byName;
}
