// Which engine of a listener serves a host name, and why; knows no engine and no request.
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Listener } from "../model/listener.ts";
import type { Route } from "../model/route.ts";
import { normalHost, patternsFor } from "./covering.ts";
import { isGrpcProtocol } from "./upstream-protocol.ts";

/** Whether gRPC clients can use the listener: they need HTTP/2 and trailers. */
export const servesGrpc = ({ http2, engine, shared_engines: isShared }: Listener): boolean =>
  http2 && (engine === "full" || isShared);

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
