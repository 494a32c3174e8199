// Converts Traefik's priorities to those of routes, as few as possible; knows no rule.
import { shareHosts } from "../exposure.ts";

export interface OrderedRoute {
  /** Priority of its router in Traefik. */
  readonly rank: number;
  /** As in a route; empty: any. */
  readonly hosts: readonly string[];
  readonly paths: readonly {
    readonly type: "prefix" | "exact" | "regex";
    readonly value: string;
  }[];
  readonly protocols: readonly string[];
  /** Number of other conditions. */
  readonly conditions: number;
}

/** More routes are not compared pairwise. */
const MAX_COMPARED = 1500;

/**
 * A route gets a priority only where it precedes an overlapping one in Traefik, but not by the gateway's own order: hosts,
 * then paths, then the number of conditions.
 */
export function prioritiesOf(routes: readonly OrderedRoute[]): readonly number[] {
  const order = routes.map((_, at) => at).toSorted((a, b) => rankAt(routes, a) - rankAt(routes, b));
  if (routes.length > MAX_COMPARED) return denseRanks(routes);
  const found = new Array<number>(routes.length).fill(0);
  for (const [position, at] of order.entries()) {
    const own = routes[at];
    if (own === undefined) continue;
    for (const below of order.slice(0, position)) {
      const other = routes[below];
      if (other === undefined || other.rank === own.rank || !overlap(own, other)) continue;
      const wanted = (found[below] ?? 0) + (precedes(own, other) ? 0 : 1);
      found[at] = Math.max(found[at] ?? 0, wanted);
    }
  }
  return found;
}

const rankAt = (routes: readonly OrderedRoute[], at: number): number => routes[at]?.rank ?? 0;

function denseRanks(routes: readonly OrderedRoute[]): readonly number[] {
  const ranks = [...new Set(routes.map(({ rank }) => rank))].toSorted((a, b) => a - b);
  const positions = new Map(ranks.map((rank, at) => [rank, at]));
  return routes.map(({ rank }) => positions.get(rank) ?? 0);
}

const overlap = (a: OrderedRoute, b: OrderedRoute): boolean =>
  a.protocols.some((protocol) => b.protocols.includes(protocol)) && shareHosts(a.hosts, b.hosts);

/** Whether the gateway tries `a` before `b` for every request that both match. */
function precedes(a: OrderedRoute, b: OrderedRoute): boolean {
  const hosts = compareHosts(a.hosts, b.hosts);
  if (hosts !== 0) return hosts > 0;
  const paths = comparePaths(a.paths, b.paths);
  if (paths !== 0) return paths > 0;
  return a.conditions > b.conditions;
}

/** Positive: all of `a` precede all of `b`. Zero: both match the same hosts. Negative otherwise. */
function compareHosts(a: readonly string[], b: readonly string[]): number {
  const kinds = (hosts: readonly string[]) =>
    hosts.length === 0 ? [0] : hosts.map((host) => (host.startsWith("*.") ? 1 : 2));
  const [own, other] = [kinds(a), kinds(b)];
  if (Math.min(...own) > Math.max(...other)) return 1;
  const isSame = a.length === b.length && a.every((host) => b.includes(host));
  const areNames = [...own, ...other].every((kind) => kind === 2);
  return isSame || areNames ? 0 : -1;
}

function comparePaths(a: OrderedRoute["paths"], b: OrderedRoute["paths"]): number {
  const [own, other] = [
    a.length === 0 ? [ANY] : a.map(rankOf),
    b.length === 0 ? [ANY] : b.map(rankOf),
  ];
  const lowest = own.reduce((one, next) => (compare(one, next) <= 0 ? one : next));
  const highest = other.reduce((one, next) => (compare(one, next) >= 0 ? one : next));
  const difference = compare(lowest, highest);
  const isOne = own.length === 1 && other.length === 1;
  return difference === 0 && isOne ? 0 : difference > 0 ? 1 : -1;
}

type PathRank = readonly [kind: number, length: number];
const ANY: PathRank = [0, 0];

function rankOf({ type, value }: OrderedRoute["paths"][number]): PathRank {
  if (type === "exact") return [3, 0];
  if (type === "regex") return [1, 0];
  const length = value.replace(/\/+$/, "").length;
  return length === 0 ? ANY : [2, length];
}

const compare = (a: PathRank, b: PathRank): number => a[0] - b[0] || a[1] - b[1];
