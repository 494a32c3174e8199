// Replaces a plugin in the catalogue of the gateway by a change; reads no file.
import type { Changes } from "../control/change.ts";
import { local } from "../control/principal.ts";
import type { Log } from "../log.ts";
import type { Plugin } from "../model/plugin.ts";
import type { AnyPlugin } from "../pdk/definition.ts";

interface ReplacementParts {
  readonly catalogue: Map<string, AnyPlugin>;
  readonly log: Log;
  /** Null: the catalogue changes without one, because none can be made. */
  readonly changes: Changes | null;
}

interface Replacement {
  readonly name: string;
  /** Null: the plugin is removed. */
  readonly next: AnyPlugin | null;
  /** Of the revision. */
  readonly summary: string;
}

/** All workers create the instances of the plugin again, or none does, and the plugin stays as it is. */
export async function replacePlugin(
  { catalogue, log, changes }: ReplacementParts,
  { name, next, summary }: Replacement,
): Promise<void> {
  const before = catalogue.get(name) ?? null;
  const put = (definition: AnyPlugin | null) =>
    void (definition === null ? catalogue.delete(name) : catalogue.set(name, definition));
  if (changes === null) return put(next);
  let first: Plugin | undefined;
  try {
    await changes.run({
      by: local,
      dryRun: false,
      mutate(draft) {
        // Inside the lock: no other change is compiled with it before this one is prepared.
        put(next);
        draft.summary = summary;
        const used = [...draft.config.plugins.values()].filter((each) => each.name === name);
        const renewed = used.map((each) => ({ ...each, updated_at: draft.stamp() }));
        for (const plugin of renewed) draft.put("plugins", plugin);
        [first] = renewed;
      },
    });
  } catch (error) {
    const isStored = first !== undefined && changes.config.plugins.get(first.id) === first;
    if (!isStored) {
      put(before);
      throw error;
    }
    log.warn("not all workers serve a plugin yet", { plugin: name, error });
  }
}
