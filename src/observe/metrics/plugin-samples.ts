// Metrics that plugins define beside their decisions, from their counters; knows no plugin.
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { type Plugin, scopeOf } from "../../model/plugin.ts";
import { isHttpProtocol } from "../../snapshot/upstream-protocol.ts";
import type { NamedObject } from "../../pdk/context.ts";
import type { MetricInstance } from "../../pdk/definition.ts";
import type { CounterTable } from "../../shared-memory/counter-table.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import type { Labels, Metric } from "./text-format.ts";

interface Row {
  readonly labels: Labels;
  readonly value: number;
}

/** Metrics of all enabled instances, grouped by name. */
export function pluginSamples(
  config: GatewayConfig,
  { catalogue, counters }: { readonly catalogue: PluginCatalogue; readonly counters: CounterTable },
): Metric[] {
  const metrics = new Map<string, Metric & { readonly samples: Row[] }>();
  let services: readonly NamedObject[] | null = null;
  for (const plugin of config.plugins.values()) {
    const shown = plugin.enabled ? (catalogue.get(plugin.name)?.metrics ?? []) : [];
    if (shown.length === 0) continue;
    services ??= [...config.services.values()]
      .filter(({ protocol }) => isHttpProtocol(protocol))
      .map(namedOf);
    const instance = instanceOf(plugin, config, services);
    // Only reads: the worker number does not matter.
    const own = counters.forInstance(0, plugin.id);
    for (const { name, help, type, read } of instance === null ? [] : shown) {
      const metric = metrics.get(name) ?? { name, help, type, samples: [] as Row[] };
      metric.samples.push(...read(instance as MetricInstance, own));
      metrics.set(name, metric as Metric & { readonly samples: Row[] });
    }
  }
  return [...metrics.values()];
}
const namedOf = ({ id, name }: NamedObject): NamedObject => ({ id, name });

function instanceOf(
  plugin: Plugin,
  { services: known, routes }: GatewayConfig,
  services: readonly NamedObject[],
): MetricInstance | null {
  const scope = scopeOf(plugin);
  if (scope === null) return null;
  const { id, label, service_id: serviceId, route_id: routeId } = plugin;
  const service = known.get(serviceId ?? "");
  const route = routes.get(routeId ?? "");
  return {
    id,
    scope,
    services,
    name: label ?? id,
    service: service === undefined ? null : namedOf(service),
    route: route === undefined ? null : namedOf(route),
  };
}
