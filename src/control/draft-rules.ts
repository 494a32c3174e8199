// Rules for a change as a whole, however it came: what only an admin may write, and what is likely a mistake; knows no store.
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { requireAdminForPrograms } from "./admin-dns-providers.ts";
import { requireAdminForPlugins } from "./admin-plugins.ts";
import type { Draft } from "./draft.ts";
import type { Actor } from "./principal.ts";
import { type ConfigCatalogue, requireAdminForDestinations } from "./secret-destinations.ts";
import { requireAdminForSockets } from "./socket-targets.ts";

export interface DraftContext {
  readonly plugins: PluginCatalogue;
  /** Whether there are other nodes, and no server of counters that they share. */
  readonly countsAlone?: boolean;
}

/** Throws an ApiError for what the caller may not write, and adds warnings to the draft. */
export function applyDraftRules(
  draft: Draft,
  by: Actor,
  { plugins, configs, countsAlone }: DraftContext & ConfigCatalogue,
): void {
  requireAdminForSockets(draft, by);
  requireAdminForPlugins(draft, by, plugins);
  requireAdminForPrograms(draft, by);
  requireAdminForDestinations(draft, by, { plugins, configs });
  if (countsAlone === true) warnAboutCounts(draft, plugins);
}

function warnAboutCounts(draft: Draft, plugins: PluginCatalogue): void {
  if (draft.config.plugins === draft.base.plugins) return;
  const warnings = draft.change().plugins.upserts.flatMap(({ name, config }) => {
    const perNode = plugins.get(name)?.perNode?.(config as never) ?? null;
    return perNode === null ? [] : [`${name}: ${perNode}; start all nodes with --counters`];
  });
  // An import may have hundreds of instances.
  for (const warning of new Set(warnings)) draft.warn(warning);
}
