// Finds routes that deny clients which overlapping routes would allow; knows no program.
import { normalHost, patternsFor } from "../snapshot/covering.ts";

/** Protections of a route, each as a unique text; null: the route denies all clients. */
export type Protections = ReadonlySet<string> | null;

export interface ProtectedRoute {
  /** As in a route; empty: any. */
  readonly hosts: readonly string[];
  readonly protections: Protections;
  /** Protections that its requests lose when another route matches them first. */
  readonly lostIfOverridden: Protections;
  /** Protections that its requests lose when it does not match them. */
  readonly lostIfUnmatched: Protections;
}

export interface Exposure {
  /** Another route denies clients that this one allows: it must not match more requests than in the source. */
  readonly mustNotWiden: boolean;
  /** This route denies clients that another one allows: it must not match fewer requests. */
  readonly mustNotNarrow: boolean;
}

/** For each route, compared with all others that can match a request for the same host. */
export function exposures(all: readonly ProtectedRoute[]): readonly Exposure[] {
  const index = new HostIndex();
  for (const one of all) index.add(one);
  return all.map((one) => exposureOf(one, index.overlapping(one)));
}

/**
 * The same for routes that are tried in order: only later routes count. `protectedHosts` are hosts that deny some clients: a
 * request for them that no route matches must be denied. Empty: any host.
 */
export function exposuresInOrder(
  all: readonly ProtectedRoute[],
  protectedHosts: readonly (readonly string[])[],
): readonly Exposure[] {
  const index = new HostIndex();
  const denied = new HostIndex();
  for (const hosts of protectedHosts)
    denied.add({ hosts, protections: null, lostIfOverridden: null, lostIfUnmatched: null });
  const found = all.toReversed().map((one) => {
    const deniedHere = one.hosts.length > 0 ? denied.overlapping(one) : denied.anywhere();
    const exposure = exposureOf(one, [...index.overlapping(one), ...deniedHere]);
    index.add(one);
    return exposure;
  });
  return found.toReversed();
}

function exposureOf(one: ProtectedRoute, others: Iterable<ProtectedRoute>): Exposure {
  let mustNotWiden = false;
  let mustNotNarrow = false;
  for (const other of others) {
    mustNotWiden ||= !hasProtections(one, other.lostIfOverridden);
    mustNotNarrow ||= !hasProtections(other, one.lostIfUnmatched);
    if (mustNotWiden && mustNotNarrow) break;
  }
  return { mustNotWiden, mustNotNarrow };
}

function hasProtections({ protections: own }: ProtectedRoute, wanted: Protections): boolean {
  if (own === null) return true;
  return wanted !== null && [...wanted].every((each) => own.has(each));
}

/** Whether both can match a request for one host. */
export const shareHosts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === 0 ||
  b.length === 0 ||
  a.some((one) => b.some((other) => covers(one, other) || covers(other, one)));

const covers = (wide: string, host: string) =>
  patternsFor(normalHost(host)).includes(normalHost(wide));

/** One route per host and set of protections, so that thousands of routes are not compared pairwise. */
class HostIndex {
  readonly #all = new Map<string, ProtectedRoute>();
  /** Routes for any host. */
  readonly #anywhere = new Map<string, ProtectedRoute>();
  readonly #at = new Map<string, Map<string, ProtectedRoute>>();
  /** By wildcard, routes for the names that it covers. */
  readonly #below = new Map<string, Map<string, ProtectedRoute>>();

  add(one: ProtectedRoute): void {
    const kind = kindOf(one);
    this.#all.set(kind, one);
    if (one.hosts.length === 0) this.#anywhere.set(kind, one);
    for (const host of one.hosts) {
      const [own = "", ...above] = patternsFor(normalHost(host));
      add(this.#at, own, { kind, one });
      for (const wildcard of above) add(this.#below, wildcard, { kind, one });
    }
  }

  anywhere(): Iterable<ProtectedRoute> {
    return this.#anywhere.values();
  }

  *overlapping(one: ProtectedRoute): Generator<ProtectedRoute> {
    if (one.hosts.length === 0) {
      yield* this.#all.values();
      return;
    }
    yield* this.#anywhere.values();
    for (const host of one.hosts)
      for (const pattern of patternsFor(normalHost(host))) {
        yield* this.#at.get(pattern)?.values() ?? [];
        if (pattern === normalHost(host)) yield* this.#below.get(pattern)?.values() ?? [];
      }
  }
}

const kindOf = ({ protections, lostIfOverridden, lostIfUnmatched }: ProtectedRoute): string =>
  JSON.stringify(
    [protections, lostIfOverridden, lostIfUnmatched].map((set) => set && [...set].toSorted()),
  );

function add(
  map: Map<string, Map<string, ProtectedRoute>>,
  key: string,
  { kind, one }: { readonly kind: string; readonly one: ProtectedRoute },
): void {
  const kinds = map.get(key);
  if (kinds === undefined) map.set(key, new Map([[kind, one]]));
  else kinds.set(kind, one);
}
