// Converts Traefik's priorities to those of routes, as few as possible; knows no rule.
import { normalHost, patternsFor } from "../../snapshot/covering.ts";

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

/** A route of the result, with its order in Traefik. */
export interface RankedRoute {
  readonly id: string;
  readonly order: OrderedRoute;
}

/** Pairs of routes with a common host; more are not compared. */
const MAX_COMPARED = 1_000_000;

/**
 * A route gets a priority only where it precedes an overlapping one in Traefik, but not by the gateway's own order: hosts,
 * then paths, then the number of conditions.
 */
export function prioritiesOf(routes: readonly OrderedRoute[]): readonly number[] {
  const order = routes.map((_, at) => at).toSorted((a, b) => rankAt(routes, a) - rankAt(routes, b));
  const found = new Array<number>(routes.length).fill(0);
  const below = new HostRoutes();
  let compared = 0;
  for (const at of order) {
    const own = routes[at];
    if (own === undefined) continue;
    for (const index of below.sharing(own.hosts)) {
      const other = routes[index];
      compared += 1;
      if (other === undefined || other.rank === own.rank || !shareProtocol(own, other)) continue;
      const wanted = (found[index] ?? 0) + (precedes(own, other) ? 0 : 1);
      found[at] = Math.max(found[at] ?? 0, wanted);
    }
    if (compared > MAX_COMPARED) return denseRanks(routes);
    below.add(own.hosts, at);
  }
  return found;
}

const rankAt = (routes: readonly OrderedRoute[], at: number): number => routes[at]?.rank ?? 0;

function denseRanks(routes: readonly OrderedRoute[]): readonly number[] {
  const ranks = [...new Set(routes.map(({ rank }) => rank))].toSorted((a, b) => a - b);
  const positions = new Map(ranks.map((rank, at) => [rank, at]));
  return routes.map(({ rank }) => positions.get(rank) ?? 0);
}

const shareProtocol = (a: OrderedRoute, b: OrderedRoute): boolean =>
  a.protocols.some((protocol) => b.protocols.includes(protocol));

/** Positions of routes by their hosts. */
class HostRoutes {
  readonly #all: number[] = [];
  readonly #anywhere: number[] = [];
  readonly #at = new Map<string, number[]>();
  /** By wildcard, routes for the names that it covers. */
  readonly #below = new Map<string, number[]>();

  add(hosts: readonly string[], position: number): void {
    this.#all.push(position);
    if (hosts.length === 0) this.#anywhere.push(position);
    for (const host of hosts) {
      const [own = "", ...above] = patternsFor(normalHost(host));
      append(this.#at, own, position);
      for (const wildcard of above) append(this.#below, wildcard, position);
    }
  }

  /** Those that can match a request for one of the hosts; some several times. */
  *sharing(hosts: readonly string[]): Generator<number> {
    if (hosts.length === 0) {
      yield* this.#all;
      return;
    }
    yield* this.#anywhere;
    for (const host of hosts) {
      const [own = "", ...above] = patternsFor(normalHost(host));
      for (const pattern of [own, ...above]) yield* this.#at.get(pattern) ?? [];
      yield* this.#below.get(own) ?? [];
    }
  }
}

function append(map: Map<string, number[]>, key: string, position: number): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [position]);
  else list.push(position);
}

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
