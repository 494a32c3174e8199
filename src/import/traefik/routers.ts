// Reads HTTP routers of Traefik: rule, schemes, middlewares and TLS; adds nothing to the result.
import type { Members } from "../members.ts";
import { type StaticSettings, type TraefikContext, withoutProvider } from "./context.ts";
import { type EntryPoint, schemeOf, usualEntryPoints } from "./entry-points.ts";
import { matchesOf, type RouteMatch } from "./match.ts";
import { middlewaresOf, type RouterMiddlewares } from "./middlewares.ts";
import { parseRule, type RuleTerm } from "./rule.ts";

export interface Router {
  readonly name: string;
  readonly members: Members;
  readonly label: string;
  readonly matches: readonly RouteMatch[];
  /** Hosts that its rule may match; empty: any. */
  readonly hosts: readonly string[];
  /** Why it is not imported; null: it is. */
  readonly problem: string | null;
  readonly rank: number;
  readonly schemes: Schemes;
  readonly service: string | null;
  readonly middlewares: RouterMiddlewares;
  /** Protections that could not be imported, beside those of middlewares. */
  readonly lost: readonly string[];
}

export interface Schemes {
  readonly hasTls: boolean;
  /** Schemes of its entry points; null: it names none, so that any will do. */
  readonly protocols: readonly ("http" | "https")[] | null;
  readonly redirectsToHttps: boolean;
  readonly certResolver: string | null;
}

export function readRouters(context: TraefikContext): readonly Router[] {
  const all = context.http?.object("routers") ?? null;
  return (all?.names ?? []).flatMap((name) => {
    const members = all?.object(name) ?? null;
    return members === null ? [] : [readRouter(name, members, context)];
  });
}

function readRouter(name: string, members: Members, context: TraefikContext): Router {
  const label = `router "${name}"`;
  members.setLabel(label);
  const rule = members.text("rule") ?? "";
  members.raw("ruleSyntax");
  members.omit("observability", "logs and metrics have settings of their own");
  const { matches, hosts, problem } = readRule(rule);
  const points = entryPointsOf(members, context);
  const tls = members.object("tls");
  const { used } = points;
  const hasTls = tls !== null || used.some(({ isTls }) => isTls === true);
  const references = [
    ...new Set(used.flatMap((point) => point.middlewares ?? [])),
    ...members.texts("middlewares"),
  ];
  const middlewares = middlewaresOf(references, context);
  const optionsName =
    tls?.text("options") ?? used.find(({ tlsOptions }) => tlsOptions)?.tlsOptions ?? "default";
  const readsAddresses =
    middlewares.converted.some(({ plugins }) =>
      plugins?.some(({ name }) => name === "ip-restriction"),
    ) || matches.some(({ clientCidrs }) => clientCidrs.length > 0);
  const isBehindProxy = readsAddresses && used.some(({ trustsProxies }) => trustsProxies);
  const closed = context.closed.get(name);
  const lost = [
    ...points.lost,
    ...(closed === undefined ? [] : [closed]),
    ...(hasTls ? tlsProtections(members, optionsName, context) : []),
    ...(isBehindProxy ? [`addresses of clients behind a proxy, for ${label}`] : []),
  ];
  const priority = members.number("priority") ?? 0;
  const resolver = tls?.text("certResolver") ?? null;
  return {
    name,
    members,
    label,
    matches,
    hosts,
    problem,
    rank: priority === 0 ? rule.length : priority,
    service: members.text("service"),
    middlewares: {
      ...middlewares,
      protections: new Set([...middlewares.protections, ...lost]),
    },
    lost,
    schemes: {
      hasTls,
      protocols: points.isImplicit ? null : protocolsOf(used, tls !== null),
      redirectsToHttps: redirects(context.settings, used, hasTls),
      certResolver: resolver ?? used.find(({ certResolver }) => certResolver)?.certResolver ?? null,
    },
  };
}

function readRule(rule: string): Pick<Router, "matches" | "problem" | "hosts"> {
  const none = { matches: [], hosts: namedHosts(rule) };
  if (rule.trim() === "") return { ...none, problem: "it has no rule" };
  const alternatives = parseRule(rule);
  if (typeof alternatives === "string") return { ...none, problem: alternatives };
  const matches = matchesOf(alternatives);
  if (typeof matches === "string") {
    const hosts = alternatives.map((terms) => terms.find(isHost)?.values ?? []);
    const isAny = hosts.some(({ length }) => length === 0);
    return { matches: [], hosts: isAny ? [] : hosts.flat(), problem: matches };
  }
  if (matches.length === 0) return { ...none, problem: "its rule matches no request" };
  const isAny = matches.some(({ hosts }) => hosts.length === 0);
  return { matches, hosts: isAny ? [] : matches.flatMap(({ hosts }) => hosts), problem: null };
}

const isHost = ({ matcher, isNegated }: RuleTerm) => matcher === "host" && !isNegated;

/** Of a rule that cannot be read. */
const namedHosts = (rule: string): readonly string[] =>
  [...rule.matchAll(/\bHost\(([^)]*)\)/gi)].flatMap(([, values = ""]) =>
    [...values.matchAll(/[`"']([^`"']+)[`"']/g)].map(([, host = ""]) => host),
  );

/** On each entry point, a router uses TLS if it says so, or the entry point. */
function protocolsOf(used: readonly EntryPoint[], ownTls: boolean): readonly ("http" | "https")[] {
  if (ownTls) return ["https"];
  const found = used.flatMap((point) => (point.isTls === true ? "https" : (schemeOf(point) ?? [])));
  return [...new Set(found)];
}

/** A redirect of the entry point for plain requests applies to the hosts of all routers for HTTPS. */
function redirects(
  { entryPoints }: StaticSettings,
  used: readonly EntryPoint[],
  hasTls: boolean,
): boolean {
  const isRedirecting = (point: EntryPoint) => point.redirectsToHttps === true;
  return (
    used.some(isRedirecting) || (hasTls && [...(entryPoints?.values() ?? [])].some(isRedirecting))
  );
}

interface UsedEntryPoints {
  readonly used: readonly EntryPoint[];
  /** Whether the router names none. */
  readonly isImplicit: boolean;
  readonly lost: readonly string[];
}

function entryPointsOf(members: Members, { settings }: TraefikContext): UsedEntryPoints {
  const names = members.texts("entryPoints");
  const known = settings.entryPoints ?? usualEntryPoints;
  if (names.length === 0) {
    const used = settings.entryPoints === null ? [] : [...settings.entryPoints.values()];
    const served = used.filter((point) => schemeOf(point) !== null);
    return { used: served, isImplicit: served.length === 0, lost: [] };
  }
  const points = names.map((name) => ({
    name,
    point: settings.sites.get(name) ?? known.get(name),
  }));
  const used = points.flatMap(({ point }) =>
    point === undefined || schemeOf(point) === null ? [] : [point],
  );
  const others = points.filter(({ point }) => point === undefined || schemeOf(point) === null);
  const list = others.map(({ name }) => name).join(", ");
  if (others.length > 0 && used.length > 0)
    members.changed(
      "entryPoints",
      `the route is not served on ${list}: add a listener and name it in the route`,
    );
  // Clients may reach such an address only from inside of a network.
  const lost = used.length === 0 ? [`entry point ${list} of ${members.label}`] : [];
  return { used, isImplicit: false, lost };
}

/** Options of TLS may require client certificates. */
function tlsProtections(
  members: Members,
  given: string,
  { tlsOptions }: TraefikContext,
): readonly string[] {
  const name = withoutProvider(given);
  const options = tlsOptions?.has(name) === true ? tlsOptions.object(name) : null;
  if (options === null) {
    if (name === "default") return [];
    members.changed("tls.options", `${name} is not in the configuration`);
    return [`TLS options ${name} of ${members.label}`];
  }
  const authentication = options.object("clientAuth");
  authentication?.ignoreRest();
  if (authentication === null) return [];
  members.changed("tls.options", "use the plugin mtls-auth for client certificates");
  return [`client certificates of ${members.label}`];
}

/** Names for which the router's certificate is issued. */
export function certificateNames({ members, matches }: Router): readonly string[] {
  const given = members.object("tls")?.objects("domains") ?? [];
  const named = given.flatMap((domain) => [
    ...(domain.has("main") ? [domain.text("main") ?? ""] : []),
    ...domain.texts("sans"),
  ]);
  if (named.length > 0) return named;
  const hosts = matches.flatMap((match) => match.hosts);
  return [...new Set(hosts.filter((host) => !host.startsWith("*.") && host.includes(".")))];
}
