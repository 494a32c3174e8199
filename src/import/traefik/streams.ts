// Converts TCP and UDP routers of Traefik to disabled stream routes; knows no HTTP.
import type { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { type TraefikContext, withoutProvider } from "./context.ts";
import { portOf, usualEntryPoints } from "./entry-points.ts";
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
  const points = members.texts("entryPoints");
  const known = settings.entryPoints ?? usualEntryPoints;
  const ports = points.flatMap((point) => portOf(known.get(point)?.address ?? "") ?? []);
  members.omit("priority", "the most specific server name decides");
  const tls = members.object("tls");
  const isPassed = tls?.flag("passthrough") === true;
  const allow = allowOf(router);
  const resolver = tls?.text("certResolver") ?? null;
  tls?.ignoreRest();
  members.ignoreRest();
  if (typeof names === "string") return output.report.omitted(label, names);
  if (targets.length === 0) return output.report.omitted(label, "its service has no server");
  if (ports.length === 0) {
    const which = points.length === 0 ? "point" : `points ${points.join(", ")}`;
    return output.report.omitted(
      label,
      `the port of its entry ${which} is unknown: add a stream route`,
    );
  }
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
    enabled: false,
  };
  for (const port of new Set(ports)) {
    const where = `${label} on port ${port}`;
    const routeName = output.name("stream_routes", `${protocol}-${name}-${port}`);
    const id = output.add(
      "stream_routes",
      { key: `${key} ${port}`, label: where },
      { name: routeName, listen_port: port, ...fields },
    );
    if (allow === null)
      output.loseProtection({ scope: { stream_route_id: id }, what: `middlewares of ${label}` });
    output.report.changed(
      where,
      `became the stream route ${routeName}, disabled: enable it when Traefik no longer listens there`,
    );
  }
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
