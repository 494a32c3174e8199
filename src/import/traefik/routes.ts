// Adds a route for each alternative of a router's rule, with its plugins and its priority; reads no configuration.
import type { Document } from "../../control/body.ts";
import type { ValueMatch } from "../../model/route.ts";
import { type Exposure, exposures } from "../exposure.ts";
import type { Output } from "../output.ts";
import { caseless, escaped } from "../expression.ts";
import type { TraefikContext } from "./context.ts";
import type { RouteMatch, TraefikPath } from "./match.ts";
import { omitUnusedMiddlewares } from "./middlewares.ts";
import { type OrderedRoute, prioritiesOf, type RankedRoute } from "./order.ts";
import { rewriteFields } from "./rewrite.ts";
import { pluginsOf, type RoutePlugin } from "./route-plugins.ts";
import { certificateNames, readRouters, type Router } from "./routers.ts";
import { TraefikServices, type UsedService } from "./services.ts";

export function addRouters(context: TraefikContext): readonly RankedRoute[] {
  const routers = readRouters(context);
  const services = new TraefikServices(context, context.http);
  const ranked = addRoutes(routers, services, context.output);
  for (const router of routers) {
    if (!router.schemes.hasTls || router.problem !== null) continue;
    const resolver = router.schemes.certResolver;
    if (resolver !== null)
      context.certificates.add(
        certificateNames(router),
        context.settings.resolvers.get(resolver) ?? null,
      );
    router.members.object("tls")?.ignoreRest();
  }
  services.omitUnused();
  omitUnusedMiddlewares(context);
  return ranked;
}

/** Services of routers by name. */
export interface Services {
  /** Null, with an entry in the report: it cannot be imported. */
  use(name: string): UsedService | null;
}

/** Adds the routes of all routers, whose ranks decide their order. */
export function addRoutes(
  routers: readonly Router[],
  services: Services,
  output: Output,
): readonly RankedRoute[] {
  const parts = routers.flatMap((router): Alternative[] =>
    router.problem === null
      ? router.matches.map((match, index) => ({ router, match, index }))
      : [{ router, match: router.hosts.length === 0 ? null : wholeHosts(router), index: 0 }],
  );
  const found = exposures(
    parts.map(({ router, match }) => ({
      hosts: match?.hosts ?? router.hosts,
      protections: router.middlewares.protections,
      lostIfOverridden: router.middlewares.protections,
      lostIfUnmatched: router.middlewares.protections,
    })),
  );
  const besideExpression = exposures(
    parts.map(({ router, match }) => {
      const isGuarded = router.middlewares.protections.size > 0;
      const hasExpression = match?.paths.some(({ kind }) => kind === "regex") ?? true;
      return {
        hosts: match?.hosts ?? router.hosts,
        protections: nothing,
        lostIfUnmatched: nothing,
        lostIfOverridden: isGuarded && hasExpression ? null : nothing,
      };
    }),
  );
  const tlsHosts = new Set(
    routers
      .filter(({ schemes }) => schemes.hasTls)
      .flatMap(({ matches }) => matches.flatMap(({ hosts }) => hosts)),
  );
  const routes = parts.flatMap((part, at): Part[] => {
    const exposure = found[at] ?? { mustNotWiden: true, mustNotNarrow: true };
    const { router, match } = part;
    if (router.problem !== null) omitRouter(part, exposure, output);
    if (match === null || (router.problem !== null && !exposure.mustNotNarrow)) return [];
    const isBesideExpression = besideExpression[at]?.mustNotWiden ?? true;
    return [
      { ...part, match, exposure, isBesideExpression, ...schemesOf(router, match, tlsHosts) },
    ];
  });
  const orders = routes.map(orderOf);
  const priorities = prioritiesOf(orders);
  return routes.flatMap((part, at) => {
    const id = addRoute(part, priorities[at] ?? 0, { output, services });
    const order = orders[at];
    return order === undefined ? [] : [{ id, order }];
  });
}

const orderOf = ({ router, match, exposure, protocols }: Part): OrderedRoute => ({
  rank: router.rank,
  hosts: match.hosts,
  paths: pathsOf(match, exposure),
  protocols,
  conditions: conditionsOf(match, protocols),
});

const nothing: ReadonlySet<string> = new Set();

interface Alternative {
  readonly router: Router;
  /** Null: the router is not imported, and its hosts are unknown. */
  readonly match: RouteMatch | null;
  readonly index: number;
}

interface Part extends Alternative {
  readonly match: RouteMatch;
  readonly exposure: Exposure;
  /** Whether an ambiguous path may be meant for a route with an expression that denies access. */
  readonly isBesideExpression: boolean;
  readonly protocols: readonly ("http" | "https")[];
  readonly redirectsToHttps: boolean;
}

/** A closed route in the place of a router that protects its hosts, but cannot be converted. */
const wholeHosts = ({ hosts }: Router): RouteMatch => ({
  hosts: [...new Set(hosts)],
  paths: [],
  methods: [],
  headers: [],
  query: [],
  clientCidrs: [],
  isInexact: false,
});

function omitRouter(
  { router: { members, problem, label }, match }: Alternative,
  exposure: Exposure,
  output: Output,
): void {
  members.drop(problem ?? "");
  if (exposure.mustNotNarrow && match === null)
    output.loseProtection({
      scope: {},
      what: label,
      missingRoute: { hosts: [], priority: Number.POSITIVE_INFINITY },
    });
}

/** A router without TLS serves plain requests only; where nothing else serves the host over HTTPS, its route does. */
function schemesOf(
  { schemes }: Router,
  { hosts }: RouteMatch,
  tlsHosts: ReadonlySet<string>,
): Pick<Part, "protocols" | "redirectsToHttps"> {
  const { hasTls, protocols, redirectsToHttps } = schemes;
  if (redirectsToHttps)
    return { protocols: hasTls ? ["http", "https"] : ["http"], redirectsToHttps };
  if (protocols === null && hasTls) return { protocols: ["https"], redirectsToHttps };
  const isBesideTls = hosts.some((host) => tlsHosts.has(host));
  const own = protocols ?? (isBesideTls ? ["http"] : ["http", "https"]);
  // Entry points that are not imported: the route is closed.
  return { protocols: own.length === 0 ? ["http"] : own, redirectsToHttps };
}

const isExact = ({ mustNotWiden, mustNotNarrow }: Exposure) => mustNotWiden || mustNotNarrow;

type RoutePath = { readonly type: "prefix" | "exact" | "regex"; readonly value: string };

/** Where protections differ between routes of a host, paths match as in Traefik: /api also matches /apix. */
function pathsOf({ paths }: RouteMatch, exposure: Exposure): readonly RoutePath[] {
  const made = paths.map((path) => (isExact(exposure) ? exactPath(path) : plainPath(path)));
  return made.some((path) => path === null) ? [] : made.filter((path) => path !== null);
}

const plainPath = ({ kind, plain }: TraefikPath): RoutePath | null =>
  kind === "prefix" && plain === "/" ? null : { type: kind, value: plain };

/** Null: any path. */
const exactPath = ({ kind, text, over }: TraefikPath): RoutePath | null => {
  if (over === "^" || (kind === "prefix" && over === "^/")) return null;
  if (kind === "exact") return { type: "exact", value: text };
  return { type: "regex", value: over };
};

const conditionsOf = (match: RouteMatch, protocols: readonly string[]): number =>
  (protocols.length === 1 ? 1 : 0) +
  (match.methods.length > 0 ? 1 : 0) +
  (match.clientCidrs.length > 0 ? 1 : 0) +
  match.query.length +
  match.headers.length;

interface Adding {
  readonly output: Output;
  readonly services: Services;
}

/** Returns its id. */
function addRoute(part: Part, priority: number, { output, services }: Adding): string {
  const { router, match, index, exposure, protocols } = part;
  const suffix = index === 0 ? "" : ` ${index + 1}`;
  const label = `${router.label}${suffix}`;
  const name = output.name("routes", `${router.name}${suffix}`);
  const used = serviceOf(router, services);
  const isClosed = used.isMissing || router.problem !== null;
  const paths = pathsOf(match, exposure);
  const plugins = pluginsOf(router.middlewares.converted, used.service);
  const rewrite = rewriteFields(plugins.path, paths);
  const id = output.add(
    "routes",
    { key: `${router.name}${suffix}`, label, protects: exposure.mustNotNarrow },
    {
      name,
      service_id: used.service?.id ?? null,
      hosts: match.hosts,
      paths,
      methods: match.methods,
      headers: headersFor(match, exposure),
      query: match.query,
      client_cidrs: match.clientCidrs,
      protocols,
      ...(priority === 0 ? {} : { priority }),
      ...plugins.fields,
      ...(part.redirectsToHttps ? { https_redirect: 301 } : {}),
      ...rewrite,
      ...(isClosed ? { maintenance: {} } : {}),
    },
  );
  const scope = { route_id: id };
  if (router.problem === null) output.report.imported(label, `became the route ${name}`);
  else
    output.report.changed(
      label,
      `all requests for ${match.hosts.join(", ")} that it could match get 503`,
    );
  if (used.isMissing) output.report.changed(label, `responds with 503: ${used.why}`);
  reportPaths(part);
  const alike = exposure.mustNotWiden ? unlike(part, id, output) : null;
  for (const plugin of withDenial(plugins.plugins, alike))
    output.plugin({
      ...plugin,
      scope,
      key: `${id} ${plugin.key}`,
      what: `${plugin.what} of ${label}`,
    });
  for (const { what, why } of plugins.omitted) output.report.omitted(`${what} of ${label}`, why);
  const lost = [...router.lost, ...plugins.lost];
  if (rewrite === null) lost.push(`the rewrites of ${label}`);
  for (const what of new Set(lost)) output.loseProtection({ scope, what });
  if (exposure.mustNotNarrow && match.isInexact)
    output.loseProtection({
      scope: {},
      what: label,
      missingRoute: { hosts: match.hosts, priority: Number.POSITIVE_INFINITY },
    });
  return id;
}

interface RouterService {
  readonly service: UsedService | null;
  readonly isMissing: boolean;
  readonly why: string;
}

function serviceOf({ service, middlewares }: Router, services: Services): RouterService {
  // A service that is never reached, behind a redirect.
  if (service === "noop@internal") return { service: null, isMissing: false, why: "" };
  const isInternal = service?.endsWith("@internal") === true;
  if (service === null || isInternal) {
    const responds = middlewares.converted.some(
      ({ plugins, fields }) =>
        fields?.["https_redirect"] !== undefined ||
        plugins?.some(({ name }) => name === "redirect"),
    );
    const why = isInternal
      ? `${service} is a part of Traefik; the management API and the web UI replace it`
      : "the router has no service";
    return { service: null, isMissing: isInternal || !responds, why };
  }
  const used = services.use(service);
  return { service: used, isMissing: used === null, why: `its service was not imported` };
}

function reportPaths({ router, match, exposure }: Part): void {
  const isPlain = !isExact(exposure);
  if (isPlain && match.paths.some(({ kind, text }) => kind === "prefix" && text !== "/"))
    router.members.changed(
      "rule",
      "PathPrefix matches whole segments: /api matches /api/x, but not /apix",
    );
}

/** Traefik compares each line of a header field. */
function headersFor(match: RouteMatch, { mustNotWiden, mustNotNarrow }: Exposure) {
  const isWhole = mustNotWiden && match.comparesWholeHost === true;
  const source = `^(?:${match.hosts.map(caseless).join("|")})$`;
  const whole: readonly ValueMatch[] = isWhole
    ? [{ name: "Host", op: "regex", value: source }]
    : [];
  const headers = [...match.headers, ...whole];
  if (!mustNotNarrow) return headers;
  return headers.map((one): ValueMatch => {
    if (one.op !== "equals") return one;
    return { ...one, op: "regex", value: `(?:^|[,;] )${escaped(one.value)}(?:[,;] |$)` };
  });
}

/** Requests that the source's router does not match; null: none. Closes the route where they cannot be expressed. */
function unlike(
  { router, match, exposure, isBesideExpression }: Part,
  id: string,
  output: Output,
): Document | null {
  const isKnown = match.paths.every(({ under }) => under !== null);
  if (match.isInexact || !isKnown) {
    output.loseProtection({ scope: { route_id: id }, what: `the conditions of ${router.label}` });
    return null;
  }
  const isAnyPath = match.paths.every(({ kind, text }) => kind === "prefix" && text === "/");
  const values = exposure.mustNotNarrow ? match.headers.filter(({ op }) => op === "equals") : [];
  const exact = {
    ...(isAnyPath && !isBesideExpression ? {} : { ambiguous_path: false }),
    ...(values.length === 0
      ? {}
      : {
          header: Object.fromEntries(
            values.map(({ name, value }) => [name, `~^${escaped(value)}$`]),
          ),
        }),
  };
  return Object.keys(exact).length === 0 ? null : { not: exact };
}

/** One policy denies all that must be denied. */
function withDenial(
  plugins: readonly RoutePlugin[],
  when: Document | null,
): readonly RoutePlugin[] {
  if (when === null) return plugins;
  const policy = plugins.find(({ name }) => name === "access-policy");
  const rules = (policy?.config["rules"] ?? []) as readonly Document[];
  const what = "requests that only resemble those";
  const denial: RoutePlugin = {
    name: "access-policy",
    key: "alike",
    ...policy,
    protects: true,
    what: policy === undefined ? what : `${policy.what} and ${what}`,
    config: { ...policy?.config, rules: [{ when, action: "deny" }, ...rules] },
  };
  return [...plugins.filter((plugin) => plugin !== policy), denial];
}
