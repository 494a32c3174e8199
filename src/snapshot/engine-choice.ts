// Which engine of a listener serves a host name, and why; knows no engine and no request.
import type { Steps } from "../pace.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Listener } from "../model/listener.ts";
import type { Route } from "../model/route.ts";
import { normalHost, patternsFor } from "./covering.ts";
import type { Candidate } from "./cross-rules.ts";
import type { EngineRoutePlan } from "./snapshot.ts";
import { isGrpcProtocol } from "./upstream-protocol.ts";

/** Whether gRPC clients can use the listener: they need HTTP/2 and trailers. */
export const servesGrpc = ({ http2, engine, shared_engines: isShared }: Listener): boolean =>
  http2 && (engine !== "standard" || isShared);

/** Whether a request for one of the route's hosts can arrive at the listener. */
export function isReachable(
  { listener_ids: ids, protocols, hosts }: Route,
  listener: Listener,
): boolean {
  if (ids.length > 0 && !ids.includes(listener.id)) return false;
  if (!protocols.includes(listener.protocol)) return false;
  if (hosts.length === 0 || listener.hosts.length === 0) return true;
  const served = listener.hosts.map(normalHost);
  return hosts.map(normalHost).some((host) => served.some((other) => overlap(host, other)));
}

const overlap = (a: string, b: string) => patternsFor(a).includes(b) || patternsFor(b).includes(a);

export interface EngineChoice {
  readonly name: Listener["engine"];
  /** A sentence for users. */
  readonly reason: string;
}

/** The engine that serves a host on a listener; `host` in lower case. */
export function chooseEngine(
  config: Pick<GatewayConfig, "routes" | "services">,
  listener: Listener,
  host: string,
): EngineChoice {
  if (listener.engine === "full")
    return { name: "full", reason: "The listener serves all hosts with the full engine." };
  if (listener.engine === "sluice")
    return {
      name: "sluice",
      reason: "The listener serves all hosts with the gateway's own engine.",
    };
  if (!listener.shared_engines)
    return { name: "standard", reason: "The listener has the standard engine only." };
  const patterns = patternsFor(normalHost(host));
  for (const route of config.routes.values()) {
    const isOfHost =
      route.hosts.length === 0 || route.hosts.some((name) => patterns.includes(normalHost(name)));
    if (!route.enabled || !isOfHost || !isReachable(route, listener)) continue;
    const need = needOf(route, config);
    if (need !== null)
      return { name: "full", reason: `${need}, and the listener has both engines.` };
  }
  return {
    name: "standard",
    reason: "The listener has both engines, and no route with this host needs the full one.",
  };
}

/** Why a route needs the full engine where listeners have both; null: it does not. */
function needOf(route: Route, { services }: Pick<GatewayConfig, "services">): string | null {
  const label = `"${route.name ?? route.id}"`;
  const service = services.get(route.service_id ?? "");
  if (service !== undefined && isGrpcProtocol(service.protocol))
    return `Service "${service.name}" of route ${label} speaks gRPC`;
  return route.exact_responses === "on" ? `Route ${label} has exact responses` : null;
}

type EngineRoutes = ReadonlyMap<string, EngineRoutePlan>;

const NONE: EngineRoutes = new Map();

/**
 * The routes that need the full engine; none while no enabled listener has both engines. Where neither a listener nor a
 * service has changed in this, only changed routes are read.
 */
export function* engineRouteSteps(
  { config, previous, difference }: Candidate,
  before: EngineRoutes | null,
): Steps<EngineRoutes> {
  if (!hasBothEngines(config)) return before?.size === 0 ? before : NONE;
  const { upserts, removals } = difference.routes;
  const isWhole =
    before === null ||
    previous === null ||
    !hasBothEngines(previous) ||
    difference.services.upserts.some(
      ({ id, protocol }) =>
        isGrpcProtocol(protocol) !== isGrpcProtocol(previous.services.get(id)?.protocol ?? ""),
    );
  const plans = new Map<string, EngineRoutePlan>(before);
  let changes = 0;
  const set = (id: string, plan: EngineRoutePlan | null) => {
    if (Bun.deepEquals(plans.get(id) ?? null, plan)) return;
    changes++;
    if (plan === null) plans.delete(id);
    else plans.set(id, plan);
  };
  for (const id of removals) set(id, null);
  for (const route of isWhole ? config.routes.values() : upserts) {
    set(route.id, engineRoutePlan(route, config));
    yield;
  }
  return changes === 0 && before !== null ? before : plans;
}

const hasBothEngines = ({ listeners }: Pick<GatewayConfig, "listeners">): boolean =>
  [...listeners.values()].some((listener) => listener.enabled && listener.shared_engines);

/** Null: the route does not need the full engine. */
export function engineRoutePlan(
  route: Route,
  config: Pick<GatewayConfig, "services">,
): EngineRoutePlan | null {
  const { id, hosts, listener_ids: listenerIds, protocols, enabled } = route;
  // Only listeners with TLS have both engines.
  if (!enabled || !protocols.includes("https") || needOf(route, config) === null) return null;
  return { id, hosts: hosts.map(normalHost), listenerIds };
}
