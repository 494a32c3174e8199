// The plain way to find covered routes: every route against all others, after every change; the reference for the fast search.
import type { Route } from "../../../src/model/route.ts";
import { isOpen } from "../../../src/snapshot/covering.ts";

/** The number of higher-priority routes compared with each route; the rest is not reported. */
const MAX_TRIES = 20;

/** An open route, prepared for comparison with many others. */
interface Wide {
  readonly route: Route;
  /** Empty: any. */
  readonly hosts: ReadonlySet<string>;
  /** Without the trailing slash, and only those that are compared as they are written. */
  readonly prefixes: readonly string[];
  readonly anyPath: boolean;
}

/** Higher priorities first. */
interface Index {
  readonly anyHost: readonly Wide[];
  readonly byHost: ReadonlyMap<string, readonly Wide[]>;
}

/**
 * Hidden route -> the route that hides it. Only priorities decide here: between equals the more specific one is tried first.
 * Walks over all routes, but only when priorities differ.
 */
export function findCoveredPlainly(all: ReadonlyMap<string, Route>): ReadonlyMap<string, string> {
  const routes = new Map([...all].sort(([, a], [, b]) => byAge(a, b)));
  const covered = new Map<string, string>();
  let lowest = Number.POSITIVE_INFINITY;
  for (const route of routes.values())
    if (route.enabled && route.priority < lowest) lowest = route.priority;
  const open = [...routes.values()].filter((route) => route.priority > lowest && isOpen(route));
  if (open.length === 0) return covered;
  const index = indexOf(open.sort((a, b) => b.priority - a.priority));
  for (const route of routes.values()) {
    const by = route.enabled ? covering(route, index) : null;
    if (by !== null) covered.set(route.id, by.id);
  }
  return covered;
}

function wideOf(route: Route): Wide {
  const prefixes = route.paths
    .filter(({ type }) => type === "prefix")
    .map(({ value }) => value.replace(/\/$/, ""));
  return {
    route,
    hosts: new Set(route.hosts.map(normal)),
    prefixes: prefixes.filter(isPlain),
    anyPath: route.paths.length === 0 || prefixes.includes(""),
  };
}

function indexOf(open: readonly Route[]): Index {
  const anyHost: Wide[] = [];
  const byHost = new Map<string, Wide[]>();
  for (const wide of open.map(wideOf)) {
    if (wide.hosts.size === 0) anyHost.push(wide);
    for (const host of wide.hosts) {
      const list = byHost.get(host);
      if (list === undefined) byHost.set(host, [wide]);
      else list.push(wide);
    }
  }
  return { anyHost, byHost };
}

function covering(route: Route, { anyHost, byHost }: Index): Route | null {
  const hosts = route.hosts.map((host) => patternsFor(normal(host)));
  const lists = [anyHost, ...(hosts[0] ?? []).map((pattern) => byHost.get(pattern) ?? [])];
  let tries = 0;
  for (const list of lists) {
    for (const wide of list) {
      if (wide.route.priority <= route.priority) break;
      if (++tries > MAX_TRIES) return null;
      if (coversPaths(wide, route) && coversHosts(wide, hosts) && coversProtocols(wide, route))
        return wide.route;
    }
  }
  return null;
}

const coversProtocols = (wide: Wide, { protocols }: Route) =>
  protocols.every((protocol) => wide.route.protocols.includes(protocol));

/** `hosts`: for each host of the narrow route the patterns that match it. */
const coversHosts = (wide: Wide, hosts: readonly (readonly string[])[]) =>
  wide.hosts.size === 0 ||
  (hosts.length > 0 && hosts.every((patterns) => patterns.some((one) => wide.hosts.has(one))));

const coversPaths = ({ anyPath, prefixes }: Wide, { paths }: Route) =>
  anyPath ||
  (prefixes.length > 0 &&
    paths.length > 0 &&
    paths.every(
      ({ type, value }) =>
        type !== "regex" && prefixes.some((one) => isBelow(value, one)) && isPlain(value),
    ));

const isBelow = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`);

/** Paths that are compared as they are written. */
const isPlain = (path: string) => /^[\w\-.~/]*$/.test(path) && !path.includes("//");

const normal = (host: string) => host.toLowerCase().replace(/\.$/, "");

/** The host itself and every wildcard above it. */
function patternsFor(host: string): string[] {
  const patterns = [host];
  const from = host.startsWith("*.") ? 2 : 0;
  for (let dot = host.indexOf(".", from); dot >= 0; dot = host.indexOf(".", dot + 1))
    patterns.push(`*${host.slice(dot)}`);
  return patterns;
}

function byAge(a: Route, b: Route): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
