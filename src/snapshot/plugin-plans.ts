// Plans of plugin instances for workers; the cost follows the size of the change.
import type { GatewayConfig } from "../model/gateway-config.ts";
import { findReferences } from "../model/secret-reference.ts";
import { type Plugin, scopeOf } from "../model/plugin.ts";
import type { Compiled, CompileContext } from "./compile-context.ts";
import type { ConfigDifference } from "./candidate.ts";
import { openConfig } from "./plugin-config.ts";
import type { PluginPlan, Snapshot } from "./snapshot.ts";

interface Sources {
  readonly config: GatewayConfig;
  readonly difference: ConfigDifference;
}

type Needs = Pick<CompileContext, "plugins" | "openSealed">;

export function planPlugins(
  { config, difference }: Sources,
  previous: Compiled | null,
  context: Needs,
): Snapshot["plugins"] {
  const { upserts, removals } = difference.plugins;
  const affected = new Map(upserts.map((plugin) => [plugin.id, plugin]));
  for (const plugin of holdersOfChangedSecrets(config, difference)) affected.set(plugin.id, plugin);
  if (previous !== null && affected.size + removals.length === 0) return previous.snapshot.plugins;
  const plans = new Map(previous?.snapshot.plugins);
  for (const id of removals) plans.delete(id);
  for (const [id, plugin] of affected) {
    const plan = plugin.enabled ? planPlugin(plugin, config, context) : null;
    if (plan === null) plans.delete(id);
    else plans.set(id, plan);
  }
  return plans;
}

function holdersOfChangedSecrets(config: GatewayConfig, { secrets }: ConfigDifference): Plugin[] {
  if (secrets.upserts.length === 0) return [];
  const names = new Set(secrets.upserts.map(({ name }) => name));
  return [...config.plugins.values()].filter((plugin) =>
    findReferences(plugin.config).some(({ name }) => names.has(name)),
  );
}

function planPlugin(
  plugin: Plugin,
  config: GatewayConfig,
  { plugins, openSealed }: Needs,
): PluginPlan | null {
  const definition = plugins.get(plugin.name);
  const scope = scopeOf(plugin);
  if (definition === undefined || scope === null) return null;
  const isAbsent = definition.code?.isAbsent === true;
  return {
    id: plugin.id,
    name: plugin.name,
    label: plugin.label,
    scope,
    serviceId: plugin.service_id,
    routeId: plugin.route_id,
    consumerId: plugin.consumer_id,
    streamRouteId: plugin.stream_route_id,
    config: openConfig(plugin, definition, { secrets: config.secrets, openSealed }),
    // What is absent rejects first, and everywhere: it may have removed fields of clients also where the condition does not match.
    priority: isAbsent ? null : plugin.priority,
    when: isAbsent ? null : plugin.when,
    onError: plugin.on_error,
    createdAt: plugin.created_at,
    ...(definition.code === undefined ? {} : { code: definition.code }),
  };
}
