// Converts TCP and UDP routers of Traefik to stream routes; knows no HTTP.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { type StaticSettings, type TraefikContext, withoutProvider } from "./context.ts";
import { portOf, type SharedPorts, usualEntryPoints } from "./entry-points.ts";
import { parseRule } from "./rule.ts";

interface Section {
  readonly protocol: "tcp" | "udp";
  readonly members: Members;
}

export function addStreams(section: Section, context: TraefikContext): void {
  const routers = section.members.object("routers");
  for (const name of routers?.names ?? []) {
    const members = routers?.object(name);
    if (members !== null && members !== undefined) addStream({ name, members, section }, context);
  }
  for (const kind of ["services", "middlewares"] as const)
    section.members.object(kind)?.ignoreRest();
  section.members.omit("serversTransports", "set tls of the services");
}

interface StreamRouter {
  readonly name: string;
  readonly members: Members;
  readonly section: Section;
}

function addStream(router: StreamRouter, context: TraefikContext): void {
  const { name, members, section } = router;
  const { output, settings } = context;
  const { protocol } = section;
  const label = `${protocol.toUpperCase()} router "${name}"`;
  members.setLabel(label);
  const names = serverNames(members.text("rule") ?? "HostSNI(`*`)");
  const targets = targetsOf(router);
  const version = balancerOf(router)?.object("proxyProtocol");
  members.omit("priority", "the most specific server name decides");
  const tls = members.object("tls");
  const isPassed = tls?.flag("passthrough") === true;
  const allow = allowOf(router);
  const resolver = tls?.text("certResolver") ?? null;
  const places = placesOf(members.texts("entryPoints"), { names, isPassed, settings });
  tls?.ignoreRest();
  members.ignoreRest();
  if (typeof names === "string") return output.report.omitted(label, names);
  if (targets.length === 0) return output.report.omitted(label, "its service has no server");
  if (typeof places === "string") return output.report.omitted(label, places);
  const key = `${protocol} ${name}`;
  const serviceId = addService({ key, label, name: `${protocol}-${name}` }, targets, {
    protocol,
    output,
  });
  if (resolver !== null && !isPassed)
    context.certificates.add(names, settings.resolvers.get(resolver) ?? null);
  const isSecured = protocol === "tcp" && tls !== null;
  const fields = {
    service_id: serviceId,
    protocol,
    ...(isSecured ? { tls_mode: isPassed ? "passthrough" : "terminate", sni: names } : {}),
    ...(allow === null ? {} : { allow }),
    ...(version == null
      ? {}
      : { proxy_protocol_out: version.number("version") === 1 ? "v1" : "v2" }),
  };
  const isDenied = allow === null;
  for (const place of places) addPlace(place, { key, label, name, fields, isDenied }, context);
}

interface Placed {
  readonly key: string;
  readonly label: string;
  readonly name: string;
  readonly fields: Document;
  /** Whether a middleware of it may deny access that the result would allow. */
  readonly isDenied: boolean;
}

function addPlace(place: StreamPlace, stream: Placed, { output, settings }: TraefikContext): void {
  const { key, label, name, fields, isDenied } = stream;
  const { listen_port: port } = place;
  const where = `${label} on port ${port}`;
  const wanted = `${String(fields["protocol"])}-${name}-${port}`;
  const routeName = output.name("stream_routes", wanted);
  const id = output.add(
    "stream_routes",
    { key: `${key} ${port}`, label: where },
    { name: routeName, ...place, ...fields },
  );
  if (isDenied)
    output.loseProtection({ scope: { stream_route_id: id }, what: `middlewares of ${label}` });
  if (settings.sharedPorts !== null)
    return output.report.imported(where, `became the stream route ${routeName}`);
  output.report.changed(
    where,
    `became the stream route ${routeName}, disabled: enable it when Traefik no longer listens there`,
  );
}

/** Fields of a stream route. */
interface StreamPlace extends Document {
  readonly listen_port: number;
}

interface Wanted {
  readonly names: readonly string[] | string;
  readonly isPassed: boolean;
  readonly settings: StaticSettings;
}

/** Where a router listens; text: why nowhere. */
function placesOf(points: readonly string[], wanted: Wanted): readonly StreamPlace[] | string {
  const { entryPoints, sharedPorts } = wanted.settings;
  if (sharedPorts !== null) return sharedPlaces(points, wanted, sharedPorts);
  const known = entryPoints ?? usualEntryPoints;
  const ports = new Set(points.flatMap((point) => portOf(known.get(point)?.address ?? "") ?? []));
  if (ports.size > 0) return [...ports].map((port) => ({ listen_port: port, enabled: false }));
  const which = points.length === 0 ? "point" : `points ${points.join(", ")}`;
  return `the port of its entry ${which} is unknown: add a stream route`;
}

/** Only TLS that names its host shares a port, and Traefik has no wildcards there. */
function sharedPlaces(
  points: readonly string[],
  { names, isPassed }: Wanted,
  sharedPorts: SharedPorts,
): readonly StreamPlace[] | string {
  const isNamed = names.length > 0 && ![...names].some((name) => name.startsWith("*"));
  if (!isPassed || !isNamed)
    return "it needs a port of its own, which labels cannot open: use HostSNI with the host names and tls.passthrough=true, or add a stream route";
  if (points.length === 0) return "add the label entrypoints, such as websecure";
  const found = points.map(sharedPorts);
  const problem = found.find((ports) => typeof ports === "string");
  if (problem !== undefined) return problem;
  const ports = found.flatMap((one) => (typeof one === "string" ? [] : one));
  const unique = new Map(ports.map((one) => [`${one.address} ${one.port}`, one]));
  return [...unique.values()].map(({ address, port, proxies }) => ({
    listen_address: address,
    listen_port: port,
    ...(proxies === null ? {} : { proxy_protocol_in: true, proxy_protocol_trusted: [...proxies] }),
  }));
}

function addService(
  { key, label, name }: { readonly key: string; readonly label: string; readonly name: string },
  targets: readonly StreamTarget[],
  { protocol, output }: { readonly protocol: "tcp" | "udp"; readonly output: Output },
): string {
  const serviceId = output.add(
    "services",
    { key, label: `service of ${label}` },
    {
      name: output.name("services", name),
      protocol: targets.some(({ isTls }) => isTls) ? "tls" : protocol,
    },
  );
  for (const { host, port } of targets)
    output.add(
      "targets",
      { key: `${key} ${host}:${port}`, label: `target ${host}:${port} of ${label}` },
      { host, port, service_id: serviceId },
    );
  return serviceId;
}

/** Empty: any; text: why the rule has no equivalent. */
function serverNames(rule: string): readonly string[] | string {
  const alternatives = parseRule(rule);
  if (typeof alternatives === "string") return alternatives;
  const found = alternatives.map((terms) => {
    const [term] = terms;
    const isKnown = terms.length === 1 && term?.matcher === "hostsni" && !term.isNegated;
    return isKnown ? term.values : null;
  });
  if (found.includes(null)) return "stream routes have no conditions but TLS server names";
  const names = found.flatMap((values) => values ?? []);
  return names.includes("*") ? [] : names.map((name) => name.toLowerCase());
}

interface StreamTarget {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

function balancerOf({ members, section }: StreamRouter): Members | null {
  const services = section.members.object("services");
  const name = withoutProvider(members.text("service") ?? "");
  const service = services?.has(name) === true ? services.object(name) : null;
  return service?.object("loadBalancer") ?? null;
}

function targetsOf(router: StreamRouter): readonly StreamTarget[] {
  const balancer = balancerOf(router);
  return (balancer?.objects("servers") ?? []).flatMap((server) => {
    const address = server.text("address") ?? "";
    const isTls = server.flag("tls") === true;
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(address) ?? [];
    const host = bracketed ?? plain;
    return host === undefined ? [] : [{ host, port: Number(port), isTls }];
  });
}

/** Null: a middleware that may deny access has no equivalent. */
function allowOf({ members, section }: StreamRouter): readonly string[] | null {
  const all = section.members.object("middlewares");
  const lists = members.texts("middlewares").map((reference) => {
    const name = withoutProvider(reference);
    const middleware = all?.has(name) === true ? all.object(name) : null;
    const settings = middleware?.object("ipAllowList") ?? middleware?.object("ipWhiteList") ?? null;
    const ranges = settings?.texts("sourceRange") ?? [];
    return ranges.length === 0 ? null : ranges;
  });
  const [only, ...others] = lists;
  if (only === undefined) return [];
  return others.length === 0 ? only : null;
}
