// Converts proxy hosts of Nginx Proxy Manager: a service and a route for each host and each location.
import { escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import { addAccess } from "./access-lists.ts";
import { mayDenyAccess } from "./nginx-lines.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, isOn, isSet, omitState, rowsOf, timesOf } from "./rows.ts";

export function addProxyHosts(context: NpmContext): void {
  for (const members of rowsOf("proxy_host", context)) {
    const domains = members.texts("domain_names");
    members.setLabel(`proxy host "${domains.join(", ")}"`);
    const host = readHost(members, domains, context);
    const locations = members.objects("locations").map((source) => readLocation(source, members));
    const routes = [null, ...locations].map((location) => addRouteOf(host, location, context));
    closeHost({ members, routes, locations }, context);
  }
}

interface Location {
  readonly source: Members;
  /** Modifier of the nginx location: `=`, `~`, `~*`, `^~` or empty. */
  readonly modifier: string;
  readonly value: string;
  /** Whether it may deny access beyond the access list of the host. */
  readonly isProtected: boolean;
}

const OF_LOCATION = [
  ...["id", "created_on", "modified_on", "path", "advanced_config"],
  ...["forward_scheme", "forward_host", "forward_port"],
];

function readLocation(source: Members, host: Members): Location {
  const path = source.text("path") ?? "/";
  source.setLabel(`location ${path} of ${host.label}`);
  for (const name of OF_LOCATION) source.raw(name);
  const [, modifier = "", value = "/"] = /^\s*(?:(=|~\*|~|\^~)\s*)?(\S.*)$/.exec(path) ?? [];
  return { source, modifier, value, isProtected: deniesAccess(source) };
}

/** Custom nginx directives or unknown settings. */
const deniesAccess = (source: Members): boolean =>
  mayDenyAccess(source.text("advanced_config") ?? "") || source.hasUnknown();

/** Whether the path alone decides which requests the location matches. */
const isPlain = ({ modifier, value }: Location): boolean =>
  (modifier === "" || modifier === "=") && /^\/[^\s;{}"'\\]*$/.test(value);

interface AddedHost {
  readonly members: Members;
  /** Ids of the route of the host and of each location. */
  readonly routes: readonly string[];
  readonly locations: readonly Location[];
}

/** Directives of a host also apply to its locations. */
function closeHost({ members, routes, locations }: AddedHost, { output }: NpmContext): void {
  const protectedLocations = locations.filter(({ isProtected }) => isProtected);
  const isWhole =
    deniesAccess(members) || (protectedLocations.length > 0 && !locations.every(isPlain));
  for (const [at, route_id] of routes.entries()) {
    const own = at === 0 ? undefined : locations[at - 1];
    const what = own?.isProtected ? own.source.label : members.label;
    if (isWhole || own?.isProtected)
      output.loseProtection({
        scope: { route_id },
        what: `advanced_config or an unknown setting of ${what}`,
      });
  }
}

interface Host {
  readonly members: Members;
  readonly name: string;
  /** Fields of all its routes. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly accessList: number;
  /** Whether it denies some clients: without it, a wildcard host may match its requests. */
  readonly isProtected: boolean;
  readonly hasHsts: boolean;
  readonly hasSubdomains: boolean;
  readonly blocksExploits: boolean;
  readonly isCached: boolean;
}

function readHost(members: Members, domains: readonly string[], context: NpmContext): Host {
  omitState(members);
  members.omit("http2_support", "set http2 of the listener", 1);
  members.omit("trust_forwarded_proto", "add the proxy to trusted_proxies", 0);
  const secured = securityOf(members, context);
  const accessList = members.number("access_list_id") ?? 0;
  const enabled = isOn(members);
  const denies = accessList > 0 || mayDenyAccess(members.text("advanced_config") ?? "");
  return {
    members,
    name: domains[0] ?? `proxy-host-${idOf(members)}`,
    fields: {
      hosts: [...new Set(domains.map((domain) => domain.toLowerCase()))],
      websocket: isSet(members, "allow_websocket_upgrade"),
      enabled,
      ...secured.fields,
      ...timesOf(members),
    },
    accessList,
    isProtected: enabled && denies,
    hasHsts: secured.hasHsts,
    hasSubdomains: secured.hasSubdomains,
    blocksExploits: isSet(members, "block_exploits"),
    isCached: isSet(members, "caching_enabled"),
  };
}

/** HTTPS redirect and HSTS of a host. */
export function securityOf(members: Members, { certificates }: NpmContext) {
  const certificate = members.number("certificate_id") ?? 0;
  if (certificate > 0 && !certificates.has(certificate))
    members.changed("certificate_id", "listeners present another certificate until you add one");
  const wants = { redirect: isSet(members, "ssl_forced"), hsts: isSet(members, "hsts_enabled") };
  // Nginx Proxy Manager ignores both without a certificate.
  const isForced = certificate > 0 && wants.redirect;
  const hasHsts = isForced && wants.hsts;
  return {
    fields: isForced ? { https_redirect: 301 } : {},
    hasHsts,
    hasSubdomains: isSet(members, "hsts_subdomains"),
  };
}

/** Adds the service and route of the host itself (null) or of a location; returns the id of the route. */
function addRouteOf(host: Host, location: Location | null, context: NpmContext): string {
  const { output } = context;
  const source = location?.source ?? host.members;
  const wanted = location === null ? host.name : `${host.name} ${source.text("path") ?? "/"}`;
  const key = `${idOf(host.members)} ${source.path}`;
  const [address = "", ...segments] = (source.text("forward_host") ?? "").split("/");
  const path = segments.join("/").replace(/\/+$/, "");
  const name = output.name("services", wanted);
  const serviceId = output.add(
    "services",
    { key, label: `service of ${source.label}` },
    {
      name,
      protocol: source.text("forward_scheme") === "https" ? "https" : "http",
      path: path === "" ? "" : `/${path}`,
      // nginx does not verify targets by default.
      tls: { verify: false },
      connect_timeout: 90_000,
      response_timeout: 90_000,
      read_timeout: 90_000,
      write_timeout: 90_000,
    },
  );
  const target = { host: address.replace(/^\[(.*)\]$/, "$1"), port: source.number("forward_port") };
  output.add(
    "targets",
    { key, label: `target of ${source.label}` },
    { ...target, service_id: serviceId },
  );
  const routeId = output.add(
    "routes",
    { key, label: source.label, protects: host.isProtected || location?.isProtected === true },
    {
      ...host.fields,
      name: output.name("routes", wanted),
      service_id: serviceId,
      ...(location === null ? {} : pathOf(location, path !== "")),
    },
  );
  output.report.imported(source.label, `became the service ${name} and a route`);
  source.omit("advanced_config", NO_LINES);
  addPlugins(host, { routeId, of: source.label }, context);
  return routeId;
}

function pathOf(
  { source, modifier, value, isProtected }: Location,
  isReplaced: boolean,
): Record<string, unknown> {
  if (modifier === "~" || modifier === "~*") {
    const regex = modifier === "~*" ? portable(value, true)?.source : value;
    if (regex === undefined) source.changed("path", "the path is case-sensitive");
    return { paths: [{ type: "regex", value: regex ?? value }], priority: 1 };
  }
  if (modifier === "=") return { paths: [{ type: "exact", value }] };
  const prefix = value.replace(/\/+$/, "") || "/";
  // A protected path matches every path that begins with it, as in nginx, which redirects to a trailing slash.
  if (isProtected) {
    const end = prefix !== "/" && value.endsWith("/") ? "(?:/|$)" : "";
    return {
      paths: [{ type: "regex", value: `^${escaped(comparable(prefix))}${end}` }],
      priority: 2,
    };
  }
  if (value !== "/") source.changed("path", `matches whole segments: ${value} and paths below it`);
  return { paths: [{ type: "prefix", value: prefix }], strip_path: isReplaced };
}

/** The path as routes normalize it. */
const comparable = (path: string): string =>
  path
    .replaceAll(/[^\0-\x7f]+/g, (characters) => encodeURI(characters.toWellFormed()))
    .replaceAll(/[/\\]+/g, "/")
    .replace(/;.*$/, "");

const NO_LINES = "nginx directives are not imported";

/** Reports custom nginx directives, and closes the route when they may deny access. */
export function omitAdvanced(members: Members, routeId: string, { output }: NpmContext): void {
  const text = members.text("advanced_config") ?? "";
  if (text.trim() === "") return;
  members.omit("advanced_config", NO_LINES);
  if (mayDenyAccess(text))
    output.loseProtection({
      scope: { route_id: routeId },
      what: `advanced_config of ${members.label}`,
    });
}

interface RouteLabel {
  readonly routeId: string;
  readonly of: string;
}

function addPlugins(host: Host, { routeId, of }: RouteLabel, context: NpmContext): void {
  const { output, accessLists } = context;
  const scope = { route_id: routeId };
  const list = accessLists.get(host.accessList);
  if (list !== undefined) addAccess(output, list, { routeId, of });
  else if (host.accessList > 0) {
    output.report.omitted(
      `${host.members.label}: access_list_id`,
      "the access list does not exist",
    );
    output.loseProtection({
      scope,
      what: `access list ${host.accessList} of ${host.members.label}`,
    });
  }
  if (host.hasHsts) addHsts(host, { routeId, of }, context);
  if (host.blocksExploits) {
    output.report.changed(`block_exploits of ${of}`, "the rules of the plugin waf-lite apply");
    const what = `block_exploits of ${of}`;
    output.plugin({ name: "waf-lite", key: routeId, what, scope, config: { mode: "block" } });
  }
  if (host.isCached) {
    output.report.changed(
      `caching_enabled of ${of}`,
      "the Cache-Control header of responses decides",
    );
    output.plugin({
      name: "response-cache",
      key: routeId,
      what: `caching_enabled of ${of}`,
      scope,
      config: {},
    });
  }
}

/** The HSTS header of Nginx Proxy Manager, and no other header of the plugin. */
export function addHsts(
  { hasSubdomains }: Pick<Host, "hasSubdomains">,
  { routeId, of }: RouteLabel,
  { output }: NpmContext,
): void {
  output.plugin({
    name: "security-headers",
    key: routeId,
    what: `HSTS of ${of}`,
    scope: { route_id: routeId },
    config: {
      hsts: { max_age: 63_072_000, include_subdomains: hasSubdomains, preload: hasSubdomains },
      frame_options: null,
      nosniff: false,
      referrer_policy: null,
      remove: [],
    },
  });
}
