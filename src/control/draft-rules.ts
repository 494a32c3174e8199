// Rules for a change as a whole, however it came: what only an admin may write, and what is likely a mistake; knows no store.
import { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import { collectionNames } from "../model/gateway-config.ts";
import type { Route } from "../model/route.ts";
import { isSocketHost } from "../model/target.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { requireAdminForPrograms } from "./admin-dns-providers.ts";
import type { Draft } from "./draft.ts";
import { type Actor, roleOf } from "./principal.ts";
import { describeProblem, labelOf } from "./reference.ts";
import { type ConfigCatalogue, requireAdminForDestinations } from "./secret-destinations.ts";

export interface DraftContext {
  readonly plugins: PluginCatalogue;
  /** Whether there are other nodes, and no server of counters that they share. */
  readonly countsAlone?: boolean;
  /** Whether an admin insists on the change. Default: false. */
  readonly force?: boolean;
}

/** Throws an ApiError for what the caller may not write, and adds warnings to the draft. */
export function applyDraftRules(
  draft: Draft,
  by: Actor,
  { plugins, configs, countsAlone, force = false }: DraftContext & ConfigCatalogue,
): void {
  if (!force || roleOf(by) !== "admin") requireUnmanaged(draft, by);
  requireAdminForSockets(draft, by);
  requireAdminForPlugins(draft, by, plugins);
  requireAdminForPrograms(draft, by);
  requireAdminForDestinations(draft, by, { plugins, configs });
  if (countsAlone === true) warnAboutCounts(draft, plugins);
  warnAboutCatchAlls(draft);
}

/** Often a mistake: it decides what clients get for host names that have nothing to do with it. */
function warnAboutCatchAlls(draft: Draft): void {
  const { base, config } = draft;
  if (config.routes === base.routes) return;
  for (const route of draft.change().routes.upserts) {
    const old = base.routes.get(route.id);
    if (!isCatchAll(route) || (old !== undefined && isCatchAll(old))) continue;
    draft.warn(
      `${labelOf(config, { collection: "routes", id: route.id })} matches every request that no other route matches, for any host: clients get its response instead of settings.default_site`,
    );
  }
}

const CONDITIONS = [
  ...(["hosts", "grpc_methods", "methods", "headers", "query", "cookies"] as const),
  ...(["client_cidrs", "listener_ids"] as const),
];

const isCatchAll = (route: Route): boolean =>
  route.enabled &&
  CONDITIONS.every((name) => route[name].length === 0) &&
  (route.paths.length === 0 ||
    route.paths.some(({ type, value }) => type === "prefix" && value === "/"));

/** Throws a 409 when anybody but the gateway itself changes what a source manages, or the targets of a managed service. */
function requireUnmanaged(draft: Draft, by: Actor): void {
  if (by.method === "local") return;
  const { base, config } = draft;
  const change = draft.change();
  // An application before its parts, which change with it.
  for (const collection of ["applications", ...collectionNames] as const) {
    const { upserts, removals } = change[collection];
    const ids = [...(upserts as readonly Identity[]).map(({ id }) => id), ...removals];
    for (const id of ids) {
      const old: Identity | undefined = base[collection].get(id);
      if (old?.managed_by !== undefined)
        throw managedError(labelOf(base, { collection, id }), old.managed_by);
    }
  }
  for (const { service_id: id } of change.targets.upserts) {
    const owner = config.services.get(id)?.managed_by;
    if (owner !== undefined)
      throw managedError(labelOf(config, { collection: "services", id }), owner);
  }
}

const managedError = (label: string, owner: string) =>
  new ApiError(
    409,
    `${label} is managed by ${owner}, which would undo the change: make it there; if that is gone for good, an admin can delete it with ?force=1`,
  );

/** Throws a 403 with the first field by which a role below admin would reach a socket that no admin chose: sockets bypass the network's protection. */
function requireAdminForSockets(draft: Draft, by: Actor): void {
  if (roleOf(by) === "admin" || draft.config.targets === draft.base.targets) return;
  for (const { id, host } of draft.change().targets.upserts) {
    if (!isSocketHost(host) || draft.base.targets.get(id)?.host === host) continue;
    const message = "only an admin may point a target at a unix socket";
    const problem = { collection: "targets", id, path: "host", message, status: 400 } as const;
    throw new ApiError(403, describeProblem(problem, draft));
  }
}

/** Throws a 403 when a role below admin writes or deletes an instance of a privileged plugin. */
function requireAdminForPlugins(draft: Draft, by: Actor, catalogue: PluginCatalogue): void {
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

function warnAboutCounts(draft: Draft, plugins: PluginCatalogue): void {
  if (draft.config.plugins === draft.base.plugins) return;
  const warnings = draft.change().plugins.upserts.flatMap(({ name, config }) => {
    const perNode = plugins.get(name)?.perNode?.(config as never) ?? null;
    return perNode === null ? [] : [`${name}: ${perNode}; start all nodes with --counters`];
  });
  // An import may have hundreds of instances.
  for (const warning of new Set(warnings)) draft.warn(warning);
}
