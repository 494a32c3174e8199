// Finds plugins by name and loads their code; knows none of them.
import type { AnyPlugin, PluginCode } from "./definition.ts";
import { ImportedPlugins } from "./plugin-code.ts";

/** Loads the module of each plugin, whose default export is the definition. */
export type PluginFiles = Readonly<Record<string, () => Promise<{ readonly default: AnyPlugin }>>>;

/** Looks up the plugin of a new instance; a map of all plugins is one. */
export interface PluginSource {
  /** `code`: of a plugin from a directory. */
  get(name: string, code?: PluginCode): AnyPlugin | undefined | Promise<AnyPlugin | undefined>;
}

/** Throws when two have the same name. */
export function catalogueOf(plugins: readonly AnyPlugin[]): ReadonlyMap<string, AnyPlugin> {
  const byName = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  if (byName.size !== plugins.length) throw new Error("two plugins have the same name");
  return byName;
}

/** All of them, in the order of the list. */
export async function loadPlugins(files: PluginFiles): Promise<readonly AnyPlugin[]> {
  const modules = await Promise.all(Object.values(files).map((load) => load()));
  return modules.map((module) => module.default);
}

/**
 * Loads each at first use, so that a thread needs no memory for plugins it does not run. `onFirstCode` is called once, before code
 * from a directory runs.
 */
export function lazyPlugins(files: PluginFiles, onFirstCode = () => {}): PluginSource {
  let imported: ImportedPlugins | null = null;
  const importCode = (code: PluginCode) => {
    if (imported === null) onFirstCode();
    imported ??= new ImportedPlugins();
    return imported.get(code);
  };
  return {
    async get(name, code) {
      if (code !== undefined) return await importCode(code);
      return Object.hasOwn(files, name) ? (await files[name]?.())?.default : undefined;
    },
  };
}
