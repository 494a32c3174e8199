// Proxy hosts of Nginx Proxy Manager with their locations: a service and a route for each place that requests go to.
import { escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import { addAccess } from "./access-lists.ts";
import { mayDenyAccess } from "./nginx-lines.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, isOn, isSet, leaveOutState, rowsOf, timesOf } from "./rows.ts";

export function addProxyHosts(context: NpmContext): void {
  for (const members of rowsOf("proxy_host", context)) {
    const domains = members.texts("domain_names");
    members.call(`proxy host "${domains.join(", ")}"`);
    const host = readHost(members, domains, context);
    const locations = members.objects("locations").map((place) => readLocation(place, members));
    const routes = [null, ...locations].map((location) => addPlace(host, location, context));
    closeHost({ members, routes, locations }, context);
  }
}

interface Location {
  readonly place: Members;
  /** How nginx compares, in front of the path. */
  readonly sign: string;
  readonly value: string;
  /** Whether it may deny access by more than the list of the host. */
  readonly isGuarded: boolean;
}

const OF_LOCATION = [
  ...["id", "created_on", "modified_on", "path", "advanced_config"],
  ...["forward_scheme", "forward_host", "forward_port"],
];

function readLocation(place: Members, host: Members): Location {
  const path = place.text("path") ?? "/";
  place.call(`location ${path} of ${host.label}`);
  for (const name of OF_LOCATION) place.raw(name);
  const [, sign = "", value = "/"] = /^\s*(?:(=|~\*|~|\^~)\s*)?(\S.*)$/.exec(path) ?? [];
  return { place, sign, value, isGuarded: deniesAccess(place) };
}

/** Lines for nginx, or something that nobody knows. */
const deniesAccess = (place: Members): boolean =>
  mayDenyAccess(place.text("advanced_config") ?? "") || place.hasUnknown();

/** One of which the path says all about the requests that it gets, whatever other locations there are. */
const isPlain = ({ sign, value }: Location): boolean =>
  (sign === "" || sign === "=") && /^\/[^\s;{}"'\\]*$/.test(value);

interface AddedHost {
  readonly members: Members;
  /** Of the host itself, and of each location. */
  readonly routes: readonly string[];
  readonly locations: readonly Location[];
}

/** What is said of a host holds for its locations. */
function closeHost({ members, routes, locations }: AddedHost, { output }: NpmContext): void {
  const guarded = locations.filter(({ isGuarded }) => isGuarded);
  const isWhole = deniesAccess(members) || (guarded.length > 0 && !locations.every(isPlain));
  for (const [at, route_id] of routes.entries()) {
    const own = at === 0 ? undefined : locations[at - 1];
    const what = own?.isGuarded ? own.place.label : members.label;
    if (isWhole || own?.isGuarded)
      output.lose({
        scope: { route_id },
        what: `advanced_config or an unknown setting of ${what}`,
      });
  }
}

interface Host {
  readonly members: Members;
  readonly name: string;
  /** Fields of all routes. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly accessList: number;
  /** Whether it denies access to some: without it, a host with a wildcard may serve its requests. */
  readonly isGuarded: boolean;
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
    isGuarded: enabled && denies,
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

/** Of the host itself (null) or one of its locations; the id of its route. */
function addPlace(host: Host, location: Location | null, context: NpmContext): string {
  const { output } = context;
  const place = location?.place ?? host.members;
  const wanted = location === null ? host.name : `${host.name} ${place.text("path") ?? "/"}`;
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
      connect_timeout: 90_000,
      response_timeout: 90_000,
      read_timeout: 90_000,
      write_timeout: 90_000,
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
    { key, label: place.label, protects: host.isGuarded || location?.isGuarded === true },
    {
      ...host.fields,
      name: output.name("routes", wanted),
      service_id: serviceId,
      ...(location === null ? {} : pathOf(location, path !== "")),
    },
  );
  output.report.carried(place.label, `became the service ${name} and a route`);
  place.leaveOut("advanced_config", NO_LINES);
  addPlugins(host, { routeId, of: place.label }, context);
  return routeId;
}

function pathOf(
  { place, sign, value, isGuarded }: Location,
  isReplaced: boolean,
): Record<string, unknown> {
  if (sign === "~" || sign === "~*") {
    const source = sign === "~*" ? portable(value, true)?.source : value;
    if (source === undefined) place.changed("path", "upper and lower case differ");
    return { paths: [{ type: "regex", value: source ?? value }], priority: 1 };
  }
  if (sign === "=") return { paths: [{ type: "exact", value }] };
  const prefix = value.replace(/\/+$/, "") || "/";
  // Closed, it matches whatever begins like this, as nginx does; to a slash at the end nginx redirects.
  if (isGuarded) {
    const end = prefix !== "/" && value.endsWith("/") ? "(?:/|$)" : "";
    return {
      paths: [{ type: "regex", value: `^${escaped(comparable(prefix))}${end}` }],
      priority: 2,
    };
  }
  if (value !== "/") place.changed("path", `matches whole segments: ${value} and what is below`);
  return { paths: [{ type: "prefix", value: prefix }], strip_path: isReplaced };
}

/** As routes compare paths. */
const comparable = (path: string): string =>
  path
    .replaceAll(/[^\0-\x7f]+/g, (characters) => encodeURI(characters.toWellFormed()))
    .replaceAll(/[/\\]+/g, "/")
    .replace(/;.*$/, "");

const NO_LINES = "lines for nginx are not carried over";

/** Lines of nginx may hold anything. */
export function leaveOutAdvanced(members: Members, routeId: string, { output }: NpmContext): void {
  const text = members.text("advanced_config") ?? "";
  if (text.trim() === "") return;
  members.leaveOut("advanced_config", NO_LINES);
  if (mayDenyAccess(text))
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
      name: "response-cache",
      key: routeId,
      what: `caching_enabled of ${of}`,
      scope,
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
