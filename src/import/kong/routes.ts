// Converts routes of Kong with their conditions and order; knows no plugin.
import { isGrpcProtocol, isHttpProtocol } from "../../snapshot/upstream-protocol.ts";
import { type Exposure, exposures } from "../exposure.ts";
import type { Members } from "../members.ts";
import { commonOf, type KongContext, referenceOf, remember } from "./context.ts";
import { authenticatesBeforeRedirect, Protections } from "./protections.ts";
import {
  type FieldTerms,
  headersOf,
  hostsAmong,
  hostsOf,
  type Hosts,
  type KongPath,
  pathOf,
} from "./route-match.ts";
import { type OrderKey, rankRoutes } from "./route-order.ts";
import { exactParts, type PathParts, plainParts, prefixOf } from "./route-paths.ts";
import type { KongService, KongServices } from "./services.ts";
import { addStreamRoute, isStreamRoute } from "./stream-routes.ts";

interface Source {
  readonly members: Members;
  readonly service: KongService | null;
  /** The service in the source. */
  readonly owner: Members | null;
  /** Why the route is not imported; null: it is. */
  readonly problem: string | null;
}

/** Adds the routes nested in services and those of the list `routes`. */
export function addRoutes(context: KongContext, { services, lost }: KongServices): void {
  const byId = new Map(services.map((service) => [service.id, service]));
  const sources = [
    ...services.flatMap((service) =>
      service.members
        .objects("routes")
        .map((members) => ({ members, service, owner: service.members, problem: null })),
    ),
    ...lost.flatMap((owner) => owner.objects("routes").map((each) => without(each, owner))),
    ...context.root.objects("routes").map((members): Source => {
      const wanted = referenceOf(members, "service");
      if (wanted === null) return { members, service: null, owner: null, problem: null };
      const id = context.ids.get(`services ${wanted}`);
      const service = id === undefined ? undefined : byId.get(id);
      if (service !== undefined) return { members, service, owner: service.members, problem: null };
      const isOwner = (each: Members) => [each.text("id"), each.text("name")].includes(wanted);
      return without(members, lost.find(isOwner) ?? null);
    }),
  ];
  const protections = new Protections(context);
  const routes = sources.flatMap((source) => readRoute(source, { context, protections }) ?? []);
  const names = [...new Set(routes.flatMap(({ hosts }) => hosts.names))];
  const shared = routes.map(({ hosts }) => hostsAmong(hosts, names));
  const found = exposures(
    routes.map(({ protections: own }, at) => ({
      hosts: shared[at] ?? [],
      protections: own,
      lostIfOverridden: own,
      lostIfUnmatched: own,
    })),
  );
  const besideRegex = exposures(
    routes.map(({ paths, protections: own }, at) => ({
      hosts: shared[at] ?? [],
      protections: nothing,
      lostIfUnmatched: nothing,
      lostIfOverridden: own.size > 0 && paths.some(({ isRegex }) => isRegex) ? null : nothing,
    })),
  );
  const exposed = routes.map((route, at) => ({
    route,
    hosts: shared[at] ?? [],
    exposure: found[at] ?? { mustNotWiden: true, mustNotNarrow: true },
    isBesideRegex: besideRegex[at]?.mustNotWiden ?? true,
  }));
  addAll(exposed, context);
}

const nothing: ReadonlySet<string> = new Set();

const without = (members: Members, owner: Members | null): Source => ({
  members,
  owner,
  service: null,
  problem: "its service was not imported",
});

interface Reading {
  readonly context: KongContext;
  readonly protections: Protections;
}

interface Route {
  readonly members: Members;
  readonly key: string;
  readonly wanted: string;
  readonly words: readonly (string | null)[];
  readonly hosts: Hosts;
  readonly headers: FieldTerms;
  readonly paths: readonly KongPath[];
  readonly order: Omit<OrderKey, "hasRegex" | "length" | "isExact">;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly strip: boolean;
  readonly protections: ReadonlySet<string>;
  /** Whether it has a condition without an equivalent, so that the import may match more requests. */
  readonly isWider: boolean;
  readonly isDropped: boolean;
  /** Imported, but disabled until a listener can serve it. */
  readonly isDisabled: boolean;
}

function readRoute(source: Source, { context, protections }: Reading): Route | null {
  const { members, service, owner, problem } = source;
  const id = members.text("id");
  const name = members.text("name");
  const fallback = `${service?.name ?? "route"} ${members.path.replaceAll(/[^0-9]+/g, " ").trim()}`;
  members.setLabel(`route "${name ?? `${fallback} ${members.texts("paths").join(" ")}`.trim()}"`);
  const key = id ?? name ?? `${service?.name ?? ""} ${members.path}`;
  const wanted = name ?? fallback;
  const why = problem ?? unfit(members, service);
  if (why === null && isStreamRoute(members))
    return addStreamRoute(members, { context, service, key, wanted });
  if (why !== null && isStreamRoute(members)) {
    members.drop(why);
    return null;
  }
  const hosts = members.has("expression") ? noHosts : hostsOf(members);
  const headers = headersOf(members);
  const methods = members.texts("methods");
  const paths = members.texts("paths").map((text) => pathOf(text, context.format));
  const own = protections.of(members, owner);
  const lost = why ?? (hosts.isLost ? "none of its hosts could be imported" : null);
  const { client_cidrs, isWider } = sourcesOf(members);
  const isDisabled = lost === null && needsEngine(source, context);
  const route: Route = {
    members,
    key,
    wanted,
    words: [id, name],
    headers,
    paths,
    protections: own,
    hosts: hosts.isLost ? noHosts : hosts,
    isWider: isWider || members.texts("snis").length > 0,
    strip: members.flag("strip_path") ?? true,
    order: {
      rules: rulesOf(members),
      hasPlainHosts: isPlain(members.texts("hosts")),
      headers: headers.plain.length,
      regexPriority: members.number("regex_priority") ?? 0,
      protections: own.size,
    },
    fields: {
      service_id: service?.id ?? null,
      methods,
      client_cidrs,
      ...httpsOf(members),
      ...(members.flag("preserve_host") === true ? { preserve_host: true } : {}),
      ...(isDisabled ? { enabled: false } : {}),
      ...commonOf(members),
    },
    isDropped: lost !== null,
    isDisabled,
  };
  omitRest(members);
  if (isDisabled)
    members.changed(
      "protocols",
      'the route is disabled: give a listener for it engine "full", or shared_engines if it has TLS, then enable it',
    );
  if (lost !== null) members.drop(lost);
  return route;
}

const noHosts: Hosts = { hosts: [], field: null, needsField: false, names: [], isLost: false };

const isPlain = (hosts: readonly string[]): boolean =>
  hosts.length > 0 && !hosts.some((host) => host.includes("*"));

function unfit(members: Members, service: KongService | null): string | null {
  if (members.text("expression") !== null)
    return "routes with expressions are not imported: write the conditions as fields";
  const protocols = members.texts("protocols");
  if (isStreamRoute(members)) return null;
  const isOfGrpc = service !== null && isGrpcProtocol(service.protocol);
  const isForStreams = service !== null && !isHttpProtocol(service.protocol);
  const isMixed = !isOfGrpc && protocols.some(isGrpcProtocol);
  if (isMixed) return "its service does not speak gRPC";
  return isForStreams || protocols.some((protocol) => protocol.startsWith("ws"))
    ? `the gateway has no routes with the protocols ${protocols.join(", ")}`
    : null;
}

/** A file of Kong has no listeners, and those of the gateway may have no engine for gRPC. */
function needsEngine({ members, service, owner }: Source, { root, output }: KongContext): boolean {
  if (service === null || !isGrpcProtocol(service.protocol)) return false;
  const plugins = [members, owner, root].flatMap((each) => each?.objects("plugins") ?? []);
  const isTranslated =
    output.plugins.get("grpc-web") !== undefined &&
    plugins.some(
      (plugin) => plugin.text("name") === "grpc-web" && plugin.flag("enabled") !== false,
    );
  return !isTranslated;
}

function rulesOf(members: Members): OrderKey["rules"] {
  const lists = { host: "hosts", path: "paths", method: "methods", sni: "snis" } as const;
  const given = Object.entries(lists).filter(([, name]) => members.texts(name).length > 0);
  const hasHeaders = (members.object("headers")?.names.length ?? 0) > 0;
  const rules = given.map(([rule]) => rule as OrderKey["rules"][number]);
  return hasHeaders ? [...rules, "header"] : rules;
}

/** Conditions on the addresses of connections. */
function sourcesOf(members: Members) {
  const addresses = members.objects("sources").map((each) => {
    each.omit("port", "client ports cannot be matched");
    return { ip: each.text("ip"), hasPort: each.has("port") };
  });
  const cidrs = addresses.flatMap(({ ip }) => ip ?? []);
  const isWhole = cidrs.length === addresses.length && addresses.every(({ hasPort }) => !hasPort);
  const hasDestinations = members.objects("destinations").length > 0;
  members.omit("destinations", "listeners decide on which addresses a route is reachable");
  return {
    client_cidrs: cidrs.length === addresses.length ? [...new Set(cidrs)] : [],
    isWider: !isWhole || hasDestinations,
  };
}

interface Part extends ExposedRoute {
  readonly part: PathParts;
  readonly index: number;
}

interface ExposedRoute {
  readonly route: Route;
  readonly exposure: Exposure;
  /** Whether an ambiguous path may be meant for a regular expression route that denies access. */
  readonly isBesideRegex: boolean;
  /** Hosts for the comparison with other routes. */
  readonly hosts: readonly string[];
}

function addAll(routes: readonly ExposedRoute[], context: KongContext): void {
  const { format, output } = context;
  const parts = routes.flatMap((exposed): Part[] => {
    const { route, exposure, hosts } = exposed;
    const { label } = route.members;
    const missingRoute = { hosts, priority: Number.POSITIVE_INFINITY };
    const isMissing = route.isDropped || route.isDisabled;
    if (isMissing && exposure.mustNotNarrow)
      output.loseProtection({ scope: {}, what: label, missingRoute });
    return route.isDropped ? [] : partsOf(exposed, format);
  });
  const ranks = rankRoutes(
    parts.map(({ route, part, exposure }) => ({
      ...route.order,
      hasRegex: part.hasRegex,
      length: part.length,
      isExact: isExact(exposure),
    })),
    format,
  );
  for (const [at, part] of parts.entries()) addPart(part, ranks[at] ?? 0, context);
}

const isExact = ({ mustNotWiden, mustNotNarrow }: Exposure) => mustNotWiden || mustNotNarrow;

function partsOf(exposed: ExposedRoute, format: string): Part[] {
  const { route, exposure } = exposed;
  const { paths, strip, members } = route;
  const isPlainly = !isExact(exposure);
  if (isPlainly && paths.some(({ text, isRegex }) => !isRegex && prefixOf(text) !== "/"))
    members.changed("paths", "a path matches whole segments: /api matches /api/x, but not /apix");
  const parts = isPlainly ? plainParts(paths, strip) : exactParts(paths, { strip, format });
  return parts.map((part, index) => ({ ...exposed, part, index }));
}

function addPart(placed: Part, priority: number, context: KongContext): void {
  const { route, part, index, exposure } = placed;
  const { members, key, fields, strip } = route;
  const { output } = context;
  const suffix = index === 0 ? "" : ` ${index + 1}`;
  const name = output.name("routes", `${route.wanted}${suffix}`);
  if (index === 0 && name !== route.wanted && route.words[1] !== null)
    members.changed("name", `became ${name}`);
  const label = `${members.label}${suffix}`;
  const { rewrite } = part;
  const id = output.add(
    "routes",
    { key: `${key}${suffix}`, label, protects: exposure.mustNotNarrow },
    {
      ...fields,
      name,
      hosts: route.hosts.hosts,
      paths: part.paths,
      headers: headersFor(route, exposure),
      priority,
      ...(strip && rewrite === null && !isExact(exposure)
        ? { strip_path: part.paths.length > 0 }
        : {}),
      ...(rewrite === null ? {} : { path_rewrite: rewrite }),
    },
  );
  members.report.imported(label, `became the route ${name}`);
  if (exposure.mustNotWiden) denyOthers(placed, { id, label }, context);
  if (authenticatesBeforeRedirect(route.protections))
    output.loseProtection({ scope: { route_id: id }, what: "authentication before a redirect" });
  if (index === 0) remember(context, { kind: "routes", words: route.words, id });
  for (const plugin of members.objects("plugins"))
    context.plugins.push({ members: plugin, owner: label, scope: { route_id: id } });
  if (index > 0)
    // Plugins of the list `plugins` reference the first part only.
    for (const word of route.words)
      if (word !== null)
        context.ids.set(`parts ${word}`, `${context.ids.get(`parts ${word}`) ?? ""} ${id}`.trim());
}

function headersFor({ headers, hosts }: Route, exposure: Exposure) {
  const { plain, over, under } = headers;
  const isNamed = hosts.field !== null && (hosts.needsField || exposure.mustNotWiden);
  const field = isNamed ? [{ name: "Host", op: "regex", value: hosts.field }] : [];
  if (!isExact(exposure)) return [...plain, ...field];
  const isNarrow = exposure.mustNotWiden && !exposure.mustNotNarrow;
  return [...(isNarrow ? (under ?? over) : over), ...field];
}

/** Denies requests that Kong's route does not match, or all requests where the difference cannot be expressed. */
function denyOthers(
  { route: { headers, paths, isWider, hosts, members }, isBesideRegex }: ExposedRoute,
  { id, label }: { readonly id: string; readonly label: string },
  { output }: KongContext,
): void {
  const scope = { route_id: id };
  const isKnown =
    headers.under !== null &&
    !isWider &&
    (hosts.hosts.length === 0 || hosts.field !== null) &&
    paths.every(({ under }) => under !== null);
  if (!isKnown) return output.loseProtection({ scope, what: `the conditions of ${members.label}` });
  const fields = Object.fromEntries(
    (headers.under ?? []).map(({ name, value }) => [name.toLowerCase(), `~${value}`]),
  );
  const isAnyPath = paths.every(({ text }) => text === "/");
  const exact = {
    ...(isAnyPath && !isBesideRegex ? {} : { ambiguous_path: false }),
    ...(headers.plain.length === 0 ? {} : { header: fields }),
  };
  if (Object.keys(exact).length === 0) return;
  output.plugin({
    name: "access-policy",
    key: `${id} alike`,
    scope,
    protects: true,
    what: `requests that only resemble those of ${label}`,
    config: { rules: [{ when: { not: exact }, action: "deny" }] },
  });
}

const REDIRECTS: Readonly<Record<number, number>> = { 301: 301, 302: 301, 307: 308, 308: 308 };

const schemes: Readonly<Record<string, string>> = { grpc: "http", grpcs: "https" };

/** A route for HTTPS also matches plain HTTP requests, and redirects them. */
function httpsOf(members: Members): Record<string, unknown> {
  const given = members.texts("protocols").map((name) => schemes[name] ?? name);
  const protocols = given.length === 0 ? ["http", "https"] : [...new Set(given)];
  const status = members.number("https_redirect_status_code") ?? 426;
  // Clients of gRPC follow no redirect.
  const isOfGrpc = members.texts("protocols").some(isGrpcProtocol);
  if (protocols.includes("http") || isOfGrpc) return { protocols };
  const code = REDIRECTS[status] ?? 308;
  if (code !== status) members.changed("https_redirect_status_code", `${status} became ${code}`);
  return { protocols: ["http", "https"], https_redirect: code };
}

function omitRest(members: Members): void {
  members.omit("path_handling", "paths are joined as in v0", "v0");
  for (const name of ["request_buffering", "response_buffering"])
    members.omit(name, "the service's response_buffer_bytes decides", true);
}
