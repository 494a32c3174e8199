// Decides whether a route matches all requests for the hosts and paths of another one; compares two at a time and knows no others.
import type { Route } from "../model/route.ts";
import { matchedPaths } from "./matched-paths.ts";

/** An open route, prepared for comparison with many others. */
export interface Wide {
  readonly id: string;
  readonly priority: number;
  readonly createdAt: string;
  readonly protocols: Route["protocols"];
  /** Empty: any. */
  readonly hosts: ReadonlySet<string>;
  /** With a trailing slash, and only those that need no normalization. */
  readonly prefixes: readonly string[];
  readonly anyPath: boolean;
}

/** A route, prepared for comparison with wide ones. */
export interface Narrow {
  readonly protocols: Route["protocols"];
  /** For each of its hosts the patterns that match it; empty: it matches any host. */
  readonly hosts: readonly (readonly string[])[];
  /** With a trailing slash; null: no path, or one that cannot be compared as text. */
  readonly paths: readonly string[] | null;
}

/** No condition other than host, path and protocol. */
export const isOpen = (route: Route): boolean =>
  route.enabled &&
  route.methods.length === 0 &&
  route.headers.length === 0 &&
  route.query.length === 0 &&
  route.cookies.length === 0 &&
  route.client_cidrs.length === 0 &&
  route.listener_ids.length === 0;

export function wideOf(route: Route): Wide {
  const paths = matchedPaths(route);
  const prefixes = paths
    .filter(({ type }) => type === "prefix")
    .map(({ value }) => value.replace(/\/$/, ""));
  return {
    id: route.id,
    priority: route.priority,
    createdAt: route.created_at,
    protocols: route.protocols,
    hosts: new Set(route.hosts.map(normalHost)),
    prefixes: prefixes.filter(isPlain).map(withSlash),
    anyPath: paths.length === 0 || prefixes.includes(""),
  };
}

export function narrowOf(route: Route): Narrow {
  const { hosts, protocols } = route;
  const paths = matchedPaths(route);
  const isComparable = paths.every(({ type, value }) => type !== "regex" && isPlain(value));
  return {
    protocols,
    hosts: hosts.map((host) => patternsFor(normalHost(host))),
    paths: paths.length > 0 && isComparable ? paths.map(({ value }) => withSlash(value)) : null,
  };
}

/** Whether both match the same requests and have the same rank. */
export const isSameMatch = (a: Route, b: Route): boolean =>
  a.enabled === b.enabled &&
  a.priority === b.priority &&
  a.created_at === b.created_at &&
  isOpen(a) === isOpen(b) &&
  Bun.deepEquals(
    [a.hosts, a.paths, a.grpc_methods, a.protocols],
    [b.hosts, b.paths, b.grpc_methods, b.protocols],
  );

/** Higher priorities first, then older routes. */
export function byRank(a: Wide, b: Wide): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/** Whether the wide route matches all requests that the other one could match, regardless of priorities. */
export const covers = (wide: Wide, narrow: Narrow): boolean =>
  coversPaths(wide, narrow) && coversHosts(wide, narrow) && coversProtocols(wide, narrow);

const coversProtocols = (wide: Wide, { protocols }: Narrow) =>
  protocols.every((protocol) => wide.protocols.includes(protocol));

const coversHosts = (wide: Wide, { hosts }: Narrow) =>
  wide.hosts.size === 0 ||
  (hosts.length > 0 && hosts.every((patterns) => patterns.some((one) => wide.hosts.has(one))));

const coversPaths = ({ anyPath, prefixes }: Wide, { paths }: Narrow) =>
  anyPath ||
  (paths !== null &&
    prefixes.length > 0 &&
    paths.every((path) => prefixes.some((prefix) => path.startsWith(prefix))));

/** A path is below a prefix when it begins with it, both with a trailing slash. */
const withSlash = (path: string) => `${path}/`;

/** Paths that need no normalization. */
const isPlain = (path: string) => /^[\w\-.~/]*$/.test(path) && !path.includes("//");

export const normalHost = (host: string) => host.toLowerCase().replace(/\.$/, "");

/** The host itself and every wildcard above it. */
export function patternsFor(host: string): string[] {
  const patterns = [host];
  const from = host.startsWith("*.") ? 2 : 0;
  for (let dot = host.indexOf(".", from); dot >= 0; dot = host.indexOf(".", dot + 1))
    patterns.push(`*${host.slice(dot)}`);
  return patterns;
}
