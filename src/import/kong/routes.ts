// Converts routes of Kong with their conditions and order; knows no plugin.
import { isGrpcProtocol, isHttpProtocol } from "../../snapshot/upstream-protocol.ts";
import { type Exposure, exposures } from "../exposure.ts";
import type { Members } from "../members.ts";
import { commonOf, type KongContext, referenceOf, remember } from "./context.ts";
import { matchesOf } from "./expression-match.ts";
import { authenticatesBeforeRedirect, Protections } from "./protections.ts";
import { httpsOf, isPlain, isWebSocket, omitRest, rulesOf, sourcesOf } from "./route-fields.ts";
import {
  allOf,
  type FieldTerms,
  headersOf,
  hostsAmong,
  hostsOf,
  type Hosts,
  type KongPath,
  pathOf,
  webSocket,
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
  const routes = sources.flatMap((source) => readRoutes(source, { context, protections }));
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
  /** Position of the alternative, for an expression that needs several routes. */
  readonly alternative: number;
  /** Imported, but disabled until a listener can serve it. */
  readonly isDisabled: boolean;
}

/** Several for an expression with alternatives. */
function readRoutes(source: Source, reading: Reading): readonly Route[] {
  const route = readRoute(source, reading);
  const expression = source.members.text("expression");
  if (route === null) return [];
  return expression === null || route.isDropped ? [route] : alternativesFor(route, expression);
}

function alternativesFor(route: Route, expression: string): readonly Route[] {
  const { members, fields } = route;
  const given = members.texts("protocols");
  const expressionPriority = members.number("priority") ?? 0;
  const matches = matchesOf(expression);
  const isServed = (wanted: readonly string[]) =>
    given.length === 0 || wanted.every((protocol) => given.includes(protocol));
  if (matches === null || !matches.every(({ protocols }) => isServed(protocols))) {
    members.drop("its expression has a condition without an equivalent");
    return [{ ...route, isDropped: true }];
  }
  return matches.map((match, alternative) => {
    const { https_redirect: _, ...others } = fields;
    const protocols =
      match.protocols.length > 0 ? { ...others, protocols: match.protocols } : fields;
    return {
      ...route,
      alternative,
      hosts: match.hosts,
      paths: match.paths,
      headers: allOf([match.headers, route.headers]),
      order: { ...route.order, expressionPriority },
      fields: { ...protocols, methods: match.methods, client_cidrs: match.cidrs },
    };
  });
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
  const upgrade = isWebSocket(members, owner) ? [webSocket] : [];
  const headers = allOf([headersOf(members), ...upgrade]);
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
      headers: headers.plain.length - upgrade.length,
      expressionPriority: null,
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
    alternative: 0,
    isDisabled,
  };
  omitRest(members);
  if (isDisabled)
    members.changed(
      "protocols",
      'the route is disabled: give a listener for it engine "sluice", then enable it',
    );
  if (lost !== null) members.drop(lost);
  return route;
}

const noHosts: Hosts = { hosts: [], field: null, needsField: false, names: [], isLost: false };

function unfit(members: Members, service: KongService | null): string | null {
  const protocols = members.texts("protocols");
  if (isStreamRoute(members)) return null;
  const isOfGrpc = service !== null && isGrpcProtocol(service.protocol);
  const isForStreams = service !== null && !isHttpProtocol(service.protocol);
  const isMixed = !isOfGrpc && protocols.some(isGrpcProtocol);
  if (isMixed) return "its service does not speak gRPC";
  return isForStreams
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
  const { alternative } = route;
  const isFirst = index === 0 && alternative === 0;
  const or = alternative === 0 ? "" : ` or ${alternative + 1}`;
  const suffix = `${or}${index === 0 ? "" : ` ${index + 1}`}`;
  const name = output.name("routes", `${route.wanted}${suffix}`);
  if (isFirst && name !== route.wanted && route.words[1] !== null)
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
  if (isFirst) remember(context, { kind: "routes", words: route.words, id });
  for (const plugin of members.objects("plugins"))
    context.plugins.push({ members: plugin, owner: label, scope: { route_id: id } });
  if (!isFirst)
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
