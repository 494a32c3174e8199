// Which routes keep clients out that others would let in, were a request to find its way to the wrong one; knows no program.
import { normalHost, patternsFor } from "../../snapshot/covering.ts";

/** What keeps clients out, each in words of its own; null: nobody gets anything. */
export type Protections = ReadonlySet<string> | null;

export interface Exposed {
  /** As in a route; empty: any. */
  readonly hosts: readonly string[];
  readonly protections: Protections;
  /** Of those, what its requests would miss if another route took them. */
  readonly ifTaken: Protections;
  /** Of those, what its requests would miss if it left them to others. */
  readonly ifLeft: Protections;
}

export interface Exposure {
  /** Another one keeps clients out that this one lets in: it must not take more than it should. */
  readonly mayTakeNoMore: boolean;
  /** This one keeps clients out that another one lets in: it must not take less. */
  readonly mayTakeNoLess: boolean;
}

/** Of each, beside all others that can take a request for the same host. */
export function exposures(all: readonly Exposed[]): readonly Exposure[] {
  const index = new HostIndex();
  for (const one of all) index.add(one);
  return all.map((one) => exposureOf(one, index.beside(one)));
}

/**
 * The same where requests are tried in order: only what comes behind counts. `guarded` are hosts of which some clients are kept
 * out: what no route takes of theirs is nobody's. Empty: any.
 */
export function exposuresInOrder(
  all: readonly Exposed[],
  guarded: readonly (readonly string[])[],
): readonly Exposure[] {
  const index = new HostIndex();
  const nothing = new HostIndex();
  for (const hosts of guarded)
    nothing.add({ hosts, protections: null, ifTaken: null, ifLeft: null });
  const found = all.toReversed().map((one) => {
    const isGuarded = one.hosts.length > 0 ? nothing.beside(one) : nothing.anywhere();
    const exposure = exposureOf(one, [...index.beside(one), ...isGuarded]);
    index.add(one);
    return exposure;
  });
  return found.toReversed();
}

function exposureOf(one: Exposed, others: Iterable<Exposed>): Exposure {
  let mayTakeNoMore = false;
  let mayTakeNoLess = false;
  for (const other of others) {
    mayTakeNoMore ||= !keepsOut(one, other.ifTaken);
    mayTakeNoLess ||= !keepsOut(other, one.ifLeft);
    if (mayTakeNoMore && mayTakeNoLess) break;
  }
  return { mayTakeNoMore, mayTakeNoLess };
}

function keepsOut({ protections: own }: Exposed, wanted: Protections): boolean {
  if (own === null) return true;
  return wanted !== null && [...wanted].every((each) => own.has(each));
}

/** Whether a request for one host can be taken by both. */
export const shareHosts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === 0 ||
  b.length === 0 ||
  a.some((one) => b.some((other) => covers(one, other) || covers(other, one)));

const covers = (wide: string, host: string) =>
  patternsFor(normalHost(host)).includes(normalHost(wide));

/** One of each kind of protection by host, so that thousands of routes are not held against each other. */
class HostIndex {
  readonly #all = new Map<string, Exposed>();
  /** Of routes for any host. */
  readonly #anywhere = new Map<string, Exposed>();
  readonly #at = new Map<string, Map<string, Exposed>>();
  /** By a wildcard, of what is below it. */
  readonly #below = new Map<string, Map<string, Exposed>>();

  add(one: Exposed): void {
    const kind = kindOf(one);
    this.#all.set(kind, one);
    if (one.hosts.length === 0) this.#anywhere.set(kind, one);
    for (const host of one.hosts) {
      const [own = "", ...above] = patternsFor(normalHost(host));
      add(this.#at, own, { kind, one });
      for (const wildcard of above) add(this.#below, wildcard, { kind, one });
    }
  }

  anywhere(): Iterable<Exposed> {
    return this.#anywhere.values();
  }

  *beside(one: Exposed): Generator<Exposed> {
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

const kindOf = ({ protections, ifTaken, ifLeft }: Exposed): string =>
  JSON.stringify([protections, ifTaken, ifLeft].map((set) => set && [...set].toSorted()));

function add(
  map: Map<string, Map<string, Exposed>>,
  key: string,
  { kind, one }: { readonly kind: string; readonly one: Exposed },
): void {
  const kinds = map.get(key);
  if (kinds === undefined) map.set(key, new Map([[kind, one]]));
  else kinds.set(kind, one);
}
