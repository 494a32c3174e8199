// Rules about stream routes and ports: one owner per port, or several that differ by TLS server names.
import type { Listener } from "../model/listener.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { portsOf, type StreamRoute } from "../model/stream-route.ts";
import { overlaps } from "./address-overlap.ts";
import type { Candidate, RuleContext } from "./candidate.ts";
import type { Report } from "../model/object-rules.ts";
import type { ProblemList } from "./problem.ts";

/** Ports in one range: each is a socket in every worker. */
const MAX_PORTS = 1000;

export function checkStreamRoutes(
  candidate: Candidate,
  context: RuleContext,
  list: ProblemList,
): void {
  const { config, difference } = candidate;
  for (const route of difference.stream_routes.upserts) {
    const report = list.of("stream_routes", route.id);
    checkFields(route, context, report);
    checkService(route, config, report);
    if (route.enabled) checkPorts(route, { config, context }, report);
  }
  checkChangedServices(candidate, list);
  checkListenersBeside(candidate, list);
}

function checkFields(route: StreamRoute, { checks }: RuleContext, report: Report): void {
  const address = checks.listenAddress(route.listen_address);
  if (address !== null) report("listen_address", address);
  checkPortFields(route, report);
  for (const field of ["allow", "deny", "proxy_protocol_trusted"] as const)
    for (const [index, text] of route[field].entries()) {
      const problem = checks.cidr(text);
      if (problem !== null) report(`${field}[${index}]`, problem);
    }
  if (route.proxy_protocol_in && route.proxy_protocol_trusted.length === 0)
    report(
      "proxy_protocol_trusted",
      "is required with proxy_protocol_in: list the proxies whose PROXY header the gateway trusts",
    );
  if (route.sni.length > 0 && route.tls_mode === "none")
    report("sni", 'needs tls_mode "passthrough" or "terminate": other traffic has no name');
  if (route.certificate_id !== null && route.tls_mode !== "terminate")
    report("certificate_id", 'needs tls_mode "terminate"');
  if (route.protocol === "udp" && (route.tls_mode !== "none" || route.proxy_protocol_in))
    report("protocol", "udp knows neither TLS nor the PROXY protocol");
  if (route.protocol === "udp" && route.proxy_protocol_out !== "off")
    report("proxy_protocol_out", "is for TCP");
}

function checkPortFields(route: StreamRoute, report: Report): void {
  if (route.listen_port === null && route.port_range === null)
    return report("listen_port", "is required, or port_range");
  if (route.listen_port !== null && route.port_range !== null)
    return report("port_range", "cannot be given beside listen_port");
  if (route.port_range === null) return;
  const [first = 0, last = 0] = route.port_range.split("-").map(Number);
  if (last > 65_535) report("port_range", "must end at 65535 at most");
  else if (first > last) report("port_range", "must begin with the lower port");
  else if (last - first >= MAX_PORTS) report("port_range", `must hold at most ${MAX_PORTS} ports`);
}

/** A stream route's service must speak its protocol. */
function checkService(route: StreamRoute, config: GatewayConfig, report: Report): void {
  const service = config.services.get(route.service_id);
  const wanted = route.protocol === "udp" ? ["udp"] : ["tcp", "tls"];
  if (service !== undefined && !wanted.includes(service.protocol))
    report(
      "service_id",
      `service "${service.name}" has the protocol ${service.protocol}, not ${wanted.join(" or ")}`,
    );
}

function checkPorts(
  route: StreamRoute,
  { config, context }: { readonly config: GatewayConfig; readonly context: RuleContext },
  report: Report,
): void {
  const field = route.port_range === null ? "listen_port" : "port_range";
  for (const port of portsOf(route)) {
    const own = { address: route.listen_address, port };
    const where = `${route.listen_address} port ${port}`;
    if (
      route.protocol === "tcp" &&
      context.managementAddresses.some((bound) => overlaps(bound, own))
    )
      return report(field, `${where} belongs to the management API`, 409);
    for (const other of config.stream_routes.values())
      if (other !== route && other.enabled && clashes(route, other, port))
        return report(field, `${where} belongs to stream route "${other.name}"`, 409);
    for (const listener of config.listeners.values()) {
      if (!listener.enabled) continue;
      if (clashesWithListener(route, listener, port))
        return report(field, `${where} belongs to listener "${listener.name}"`, 409);
      const unlike = sharingProblem(route, listener, port);
      if (unlike !== null)
        return report(field, `${where} is shared with listener "${listener.name}", ${unlike}`, 409);
    }
  }
}

/** Two stream routes share a port only on the same address, with TLS passthrough for different names. */
function clashes(route: StreamRoute, other: StreamRoute, port: number): boolean {
  if (route.protocol !== other.protocol || !portsOf(other).includes(port)) return false;
  const at = (owner: StreamRoute) => ({ address: owner.listen_address, port });
  if (!overlaps(at(route), at(other))) return false;
  if (route.listen_address !== other.listen_address) return true;
  const share = (owner: StreamRoute) => owner.tls_mode === "passthrough" && owner.sni.length > 0;
  return !share(route) || !share(other) || route.sni.some((name) => other.sni.includes(name));
}

/** A TCP stream route may own some names of an https listener on the same address; HTTP/3 is UDP. */
function clashesWithListener(route: StreamRoute, listener: Listener, port: number): boolean {
  if (listener.port !== port) return false;
  if (route.protocol === "udp" && !(listener.http3 && listener.protocol === "https")) return false;
  if (!overlaps(listener, { address: route.listen_address, port })) return false;
  const mayShare =
    route.protocol === "tcp" &&
    listener.protocol === "https" &&
    listener.address === route.listen_address &&
    route.tls_mode === "passthrough" &&
    route.sni.length > 0;
  return !mayShare;
}

/** Owners of a shared port must agree on settings that apply before the server name is known; null when they do, or do not share. */
function sharingProblem(route: StreamRoute, listener: Listener, port: number): string | null {
  const isShared = listener.port === port && listener.address === route.listen_address;
  if (!isShared || route.protocol !== "tcp") return null;
  if (listener.http3)
    return "which must not offer HTTP/3: the gateway cannot route it by server name";
  if (listener.proxy_protocol === route.proxy_protocol_in) return null;
  return listener.proxy_protocol
    ? "which expects the PROXY protocol: proxy_protocol_in must be true"
    : "which does not expect the PROXY protocol: proxy_protocol_in must be false";
}

/** Unchanged stream routes may refer to deleted services, or to services with another protocol. */
function checkChangedServices(
  { config, previous, difference }: Candidate,
  list: ProblemList,
): void {
  const { services, stream_routes: changed } = difference;
  if (previous === null || services.upserts.length === 0) return;
  const seen = new Set(changed.upserts.map(({ id }) => id));
  for (const route of config.stream_routes.values())
    if (!seen.has(route.id)) checkService(route, config, list.of("stream_routes", route.id));
}

function checkListenersBeside({ config, difference }: Candidate, list: ProblemList): void {
  for (const listener of difference.listeners.upserts) {
    if (!listener.enabled) continue;
    const report = list.of("listeners", listener.id);
    const where = `${listener.address} port ${listener.port}`;
    for (const route of config.stream_routes.values()) {
      if (!route.enabled || !portsOf(route).includes(listener.port)) continue;
      const owner = `stream route "${route.name}"`;
      if (clashesWithListener(route, listener, listener.port))
        report("port", `${where} belongs to ${owner}`, 409);
      else if (sharingProblem(route, listener, listener.port) !== null)
        report(
          "port",
          `${where} is shared with ${owner}: both must agree on the PROXY protocol, and HTTP/3 must be off`,
          409,
        );
    }
  }
}
