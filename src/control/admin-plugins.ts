// Restricts instances of privileged plugins to admins. Knows no plugin and no HTTP.
import { ApiError } from "../model/error.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { Draft } from "./draft.ts";
import { type Actor, roleOf } from "./principal.ts";
import { describeProblem } from "./reference.ts";

/** Throws a 403 when a role below admin would write or delete an instance of a plugin that requires admin. */
export function requireAdminForPlugins(draft: Draft, by: Actor, catalogue: PluginCatalogue): void {
  const { plugins: now } = draft.config;
  const { plugins: before } = draft.base;
  if (roleOf(by) === "admin" || now === before) return;
  const { upserts, removals } = draft.change().plugins;
  for (const id of [...upserts.map((plugin) => plugin.id), ...removals]) {
    const names = [before.get(id)?.name, now.get(id)?.name];
    const name = names.find((each) => each !== undefined && catalogue.get(each)?.needsAdmin);
    if (name === undefined) continue;
    const message = `only an admin may write or delete an instance of ${name}`;
    const problem = { collection: "plugins", id, path: "", message, status: 400 } as const;
    throw new ApiError(403, describeProblem(problem, draft));
  }
}
