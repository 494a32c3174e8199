// Rules about listeners that can serve gRPC, and the routes that need one; knows no engine.
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Listener } from "../model/listener.ts";
import type { Plugin } from "../model/plugin.ts";
import type { Route } from "../model/route.ts";
import type { Service } from "../model/service.ts";
import type { Steps } from "../pace.ts";
import type { Candidate } from "./candidate.ts";
import { isReachable, servesGrpc } from "./engine-choice.ts";
import type { ProblemList } from "./problem.ts";
import { isGrpcProtocol } from "./upstream-protocol.ts";

/** Translates for clients that do not speak gRPC, so that its routes need no engine for it. */
const TRANSLATOR = "grpc-web";

const WAY_OUT = 'give it engine "sluice" with http2, or add the plugin grpc-web for browsers';

/** Reports routes whose service speaks gRPC while no listener does, at the object that the change is to blame for. */
export function* checkEngines(candidate: Candidate, list: ProblemList): Steps<void> {
  const { config, difference } = candidate;
  const blamed = blamedObjects(candidate);
  const changed = new Set(difference.routes.upserts);
  const reported = new Set<string>();
  let translators: readonly Plugin[] | null = null;
  for (const route of blamed === null ? changed : config.routes.values()) {
    const problem = problemOf(route, config);
    if (problem !== null) translators ??= [...config.plugins.values()].filter(isTranslator);
    if (problem !== null && translators?.some((plugin) => appliesTo(plugin, route)) !== true) {
      const place = (changed.has(route) ? null : blamed?.(route)) ?? {
        collection: "routes",
        id: route.id,
        path: problem.path,
      };
      const key = `${place.collection} ${place.id}`;
      const label =
        place.collection === "routes" ? "" : `route "${route.name ?? route.id}" needs it: `;
      if (!reported.has(key))
        list.of(place.collection, place.id)(place.path, label + problem.message);
      reported.add(key);
    }
    yield;
  }
}

interface Place {
  readonly collection: "routes" | "services" | "listeners" | "plugins";
  readonly id: string;
  readonly path: string;
}

/** Settings of a listener that decide which gRPC requests it serves. */
const listenerFields = [
  "engine",
  "http2",
  "enabled",
  "protocol",
  "hosts",
] as const satisfies readonly (keyof Listener)[];

/** Finds the changed object through which an unchanged route lost its engine; null when no change can have done that. */
function blamedObjects({
  config,
  previous,
  difference,
}: Candidate): ((route: Route) => Place | null) | null {
  const services = difference.services.upserts.filter(
    ({ id, protocol }) =>
      isGrpcProtocol(protocol) && !isGrpcProtocol(previous?.services.get(id)?.protocol ?? ""),
  );
  const { upserts: listeners, removals } = difference.listeners;
  const plugins = difference.plugins.upserts.filter(({ id }) =>
    isTranslator(previous?.plugins.get(id)),
  );
  const isPluginGone = difference.plugins.removals.some((id) =>
    isTranslator(previous?.plugins.get(id)),
  );
  const changes = services.length + listeners.length + removals.length + plugins.length;
  if (previous === null || (changes === 0 && !isPluginGone)) return null;
  return (route) => {
    const service = services.find(({ id }) => id === route.service_id);
    if (service !== undefined) return { collection: "services", id: service.id, path: "protocol" };
    for (const listener of listeners) {
      const before = previous.listeners.get(listener.id);
      if (before === undefined || !servesGrpc(before) || !isReachable(route, before)) continue;
      const path = listenerFields.find((field) => !Bun.deepEquals(before[field], listener[field]));
      if (path !== undefined) return { collection: "listeners", id: listener.id, path };
    }
    const plugin = plugins.find(({ id }) => {
      const before = previous.plugins.get(id);
      return before !== undefined && appliesTo(before, route);
    });
    if (plugin === undefined || !config.plugins.has(plugin.id)) return null;
    return { collection: "plugins", id: plugin.id, path: plugin.enabled ? "" : "enabled" };
  };
}

const isTranslator = (plugin: Plugin | undefined): boolean =>
  plugin?.enabled === true && plugin.name === TRANSLATOR;

const appliesTo = (plugin: Plugin, route: Route): boolean =>
  plugin.consumer_id === null &&
  plugin.stream_route_id === null &&
  (plugin.route_id ?? route.id) === route.id &&
  (plugin.service_id ?? route.service_id) === route.service_id;

function problemOf(
  route: Route,
  { services, listeners }: GatewayConfig,
): { readonly path: string; readonly message: string } | null {
  const service: Service | undefined = services.get(route.service_id ?? "");
  if (service === undefined || !isGrpcProtocol(service.protocol) || !route.enabled) return null;
  const speaks = `service "${service.name}" speaks gRPC`;
  for (const [index, id] of route.listener_ids.entries()) {
    const listener = listeners.get(id);
    if (listener !== undefined && !servesGrpc(listener))
      return {
        path: `listener_ids[${index}]`,
        message: `${speaks}, which listener "${listener.name}" does not serve: ${WAY_OUT}`,
      };
  }
  const isServed = [...listeners.values()].some(
    (listener) =>
      servesGrpc(listener) &&
      // A route may name listeners that are disabled for now.
      (listener.enabled || route.listener_ids.length > 0) &&
      isReachable(route, listener),
  );
  return isServed
    ? null
    : {
        path: "service_id",
        message: `${speaks}, which no enabled listener with this route's hosts and protocols serves: choose one and ${WAY_OUT}`,
      };
}
