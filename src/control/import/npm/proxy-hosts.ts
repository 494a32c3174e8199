// Proxy hosts of Nginx Proxy Manager with their locations: a service and a route for each place that requests go to.
import type { Members } from "../members.ts";
import { addAccess } from "./access-lists.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, isSet, leaveOutState, rowsOf, timesOf } from "./rows.ts";

/** Words of nginx that keep clients out. */
const GUARDS =
  /\b(?:auth_request|auth_basic|auth_jwt|allow|deny|satisfy|internal|ssl_verify_client|return|if)\b/;

export function addProxyHosts(context: NpmContext): void {
  for (const members of rowsOf("proxy_host", context)) {
    const domains = members.texts("domain_names");
    members.call(`proxy host "${domains.join(", ")}"`);
    const host = readHost(members, domains, context);
    addPlace(host, { place: members, location: null }, context);
    for (const location of members.objects("locations")) {
      const path = location.text("path") ?? "/";
      location.call(`location ${path} of ${members.label}`);
      addPlace(host, { place: location, location: path }, context);
    }
  }
}

interface Host {
  readonly members: Members;
  readonly name: string;
  /** Fields of all routes. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly accessList: number;
  readonly hasHsts: boolean;
  readonly hasSubdomains: boolean;
  readonly blocksExploits: boolean;
  readonly isCached: boolean;
}

function readHost(members: Members, domains: readonly string[], context: NpmContext): Host {
  leaveOutState(members);
  members.leaveOut("http2_support", "listeners say whether they offer HTTP/2", 1);
  members.leaveOut("trust_forwarded_proto", "name the proxy in trusted_proxies", 0);
  const secured = securityOf(members, context);
  return {
    members,
    name: domains[0] ?? `proxy-host-${idOf(members)}`,
    fields: {
      hosts: [...new Set(domains.map((domain) => domain.toLowerCase()))],
      websocket: isSet(members, "allow_websocket_upgrade"),
      enabled: members.raw("enabled") === null || isSet(members, "enabled"),
      ...secured.fields,
      ...timesOf(members),
    },
    accessList: members.number("access_list_id") ?? 0,
    hasHsts: secured.hasHsts,
    hasSubdomains: secured.hasSubdomains,
    blocksExploits: isSet(members, "block_exploits"),
    isCached: isSet(members, "caching_enabled"),
  };
}

/** What the certificate of a host brings with it. */
export function securityOf(members: Members, { certificates }: NpmContext) {
  const certificate = members.number("certificate_id") ?? 0;
  if (certificate > 0 && !certificates.has(certificate))
    members.changed("certificate_id", "listeners present another certificate until there is one");
  const wants = { redirect: isSet(members, "ssl_forced"), hsts: isSet(members, "hsts_enabled") };
  // Without a certificate neither of them does anything there.
  const isForced = certificate > 0 && wants.redirect;
  const hasHsts = isForced && wants.hsts;
  return {
    fields: isForced ? { https_redirect: 301 } : {},
    hasHsts,
    hasSubdomains: isSet(members, "hsts_subdomains"),
  };
}

interface Place {
  /** The host itself or one of its locations. */
  readonly place: Members;
  readonly location: string | null;
}

function addPlace(host: Host, { place, location }: Place, context: NpmContext): void {
  const { output } = context;
  const wanted = location === null ? host.name : `${host.name} ${location}`;
  const key = `${idOf(host.members)} ${place.path}`;
  const [address = "", ...segments] = (place.text("forward_host") ?? "").split("/");
  const path = segments.join("/").replace(/\/+$/, "");
  const name = output.name("services", wanted);
  const serviceId = output.add(
    "services",
    { key, label: `service of ${place.label}` },
    {
      name,
      protocol: place.text("forward_scheme") === "https" ? "https" : "http",
      path: path === "" ? "" : `/${path}`,
      // nginx verifies nobody unless it is told to.
      tls: { verify: false },
      ...{ connect_timeout: 90_000, response_timeout: 90_000 },
      ...{ read_timeout: 90_000, write_timeout: 90_000 },
    },
  );
  const target = { host: address.replace(/^\[(.*)\]$/, "$1"), port: place.number("forward_port") };
  output.add(
    "targets",
    { key, label: `target of ${place.label}` },
    { ...target, service_id: serviceId },
  );
  const routeId = output.add(
    "routes",
    { key, label: place.label },
    {
      ...host.fields,
      ...{ name: output.name("routes", wanted), service_id: serviceId },
      ...(location === null ? {} : pathOf(location, path !== "", place)),
    },
  );
  output.report.carried(place.label, `became the service ${name} and a route`);
  if (location !== null) leaveOutOfLocation(place);
  leaveOutAdvanced(place, routeId, context);
  addPlugins(host, { routeId, of: place.label }, context);
}

/** How nginx compares, in front of the path. */
function pathOf(location: string, isReplaced: boolean, place: Members): Record<string, unknown> {
  const [, sign = "", value = "/"] = /^\s*(?:(=|~\*|~|\^~)\s*)?(\S.*)$/.exec(location) ?? [];
  if (sign === "~" || sign === "~*") {
    if (sign === "~*") place.changed("path", "upper and lower case differ");
    return { paths: [{ type: "regex", value }], priority: 1 };
  }
  if (sign === "=") return { paths: [{ type: "exact", value }] };
  if (value !== "/") place.changed("path", `matches whole segments: ${value} and what is below`);
  const prefix = value.replace(/\/+$/, "") || "/";
  return { paths: [{ type: "prefix", value: prefix }], strip_path: isReplaced };
}

function leaveOutOfLocation(place: Members): void {
  for (const name of ["id", "created_on", "modified_on"]) place.raw(name);
}

/** Lines of nginx may hold anything. */
export function leaveOutAdvanced(members: Members, routeId: string, { output }: NpmContext): void {
  const text = members.text("advanced_config") ?? "";
  if (text.trim() === "") return;
  members.leaveOut("advanced_config", "lines for nginx are not carried over");
  if (GUARDS.test(text.replaceAll(/#.*$/gm, "")))
    output.lose({ scope: { route_id: routeId }, what: `advanced_config of ${members.label}` });
}

interface Protected {
  readonly routeId: string;
  readonly of: string;
}

function addPlugins(host: Host, { routeId, of }: Protected, context: NpmContext): void {
  const { output, accessLists } = context;
  const scope = { route_id: routeId };
  const list = accessLists.get(host.accessList);
  if (list !== undefined) addAccess(output, list, { routeId, of });
  else if (host.accessList > 0) {
    output.report.leftOut(`${host.members.label}: access_list_id`, "there is no such access list");
    output.lose({ scope, what: `access list ${host.accessList} of ${host.members.label}` });
  }
  if (host.hasHsts) addHsts(host, { routeId, of }, context);
  if (host.blocksExploits) {
    output.report.changed(`block_exploits of ${of}`, "other rules decide what is an attack");
    const what = `block_exploits of ${of}`;
    output.plugin({ name: "waf-lite", key: routeId, what, scope, config: { mode: "block" } });
  }
  if (host.isCached) {
    output.report.changed(`caching_enabled of ${of}`, "what answers say about themselves decides");
    output.plugin({
      ...{ name: "response-cache", key: routeId, what: `caching_enabled of ${of}`, scope },
      config: {},
    });
  }
}

/** As nginx is told to, and no other field. */
export function addHsts(
  { hasSubdomains }: Pick<Host, "hasSubdomains">,
  { routeId, of }: Protected,
  { output }: NpmContext,
): void {
  output.plugin({
    ...{ name: "security-headers", key: routeId, what: `HSTS of ${of}` },
    scope: { route_id: routeId },
    config: {
      hsts: { max_age: 63_072_000, include_subdomains: hasSubdomains, preload: hasSubdomains },
      ...{ frame_options: null, nosniff: false, referrer_policy: null, remove: [] },
    },
  });
}
