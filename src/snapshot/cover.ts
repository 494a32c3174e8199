// Finds routes that a route of a higher priority hides because it matches all requests for their hosts and paths; may miss some.
import type { Steps } from "../pace.ts";
import type { CollectionChange } from "./snapshot.ts";
import type { Route } from "../model/route.ts";
import {
  byRank,
  covers,
  isOpen,
  isSameMatch,
  narrowOf,
  normalHost,
  patternsFor,
  type Wide,
  wideOf,
} from "./covering.ts";

/** Routes of a higher priority that each route is compared with at most. */
const MAX_TRIES = 20;

/** Key of routes that match any host; not a valid host. */
const ANY_HOST = " ";

/** The routes of one host or pattern. */
interface HostRoutes {
  /** Open routes that name it, higher priorities first. */
  readonly wides: readonly Wide[];
  /** Ids of the routes that name it first. */
  readonly routes: readonly string[];
}

/** Hidden routes, with the index that updates them after a change without comparing every route. */
export interface Cover {
  /** Hidden route -> the route that hides it. */
  readonly coveredBy: ReadonlyMap<string, string>;
  /** By host or pattern; null while all routes have one priority, because then none is hidden. */
  readonly byHost: ReadonlyMap<string, HostRoutes> | null;
  /** That priority; null while there is no route. */
  readonly priority: number | null;
}

interface Before {
  readonly cover: Cover;
  readonly routes: ReadonlyMap<string, Route>;
}

/**
 * Brings `previous` up to date with a change of the routes. Only priorities decide here: between equals the more specific
 * one is tried first.
 */
export function* coverSteps(
  previous: Before | null,
  change: CollectionChange<Route>,
  routes: ReadonlyMap<string, Route>,
): Steps<Cover> {
  if (previous !== null && previous.cover.byHost !== null)
    return yield* update({ ...previous, byHost: previous.cover.byHost }, change, routes);
  const priorities = new Set<number>();
  if (previous !== null && previous.cover.priority !== null)
    priorities.add(previous.cover.priority);
  for (const { enabled, priority } of change.upserts) if (enabled) priorities.add(priority);
  const [priority = null] = priorities;
  if (priorities.size < 2) return { coveredBy: new Map(), byHost: null, priority };
  const cover = { coveredBy: new Map(), byHost: null, priority };
  const all = { upserts: [...routes.values()], removals: [] };
  return yield* update({ cover, routes: new Map(), byHost: new Map() }, all, routes);
}

/** What a change does to the routes of a host. */
interface Edit {
  readonly gone: Set<string>;
  readonly wides: Wide[];
  readonly routes: string[];
}

class Edits extends Map<string, Edit> {
  at(host: string): Edit {
    const edit = this.get(host) ?? { gone: new Set(), wides: [], routes: [] };
    this.set(host, edit);
    return edit;
  }

  leave(route: Route): void {
    for (const host of hostsOf(route)) this.at(host).gone.add(route.id);
  }

  enter(route: Route): void {
    const [first = ANY_HOST] = hostsOf(route);
    this.at(first).routes.push(route.id);
    if (!isOpen(route)) return;
    const wide = wideOf(route);
    for (const host of hostsOf(route)) this.at(host).wides.push(wide);
  }
}

const hostsOf = ({ hosts }: Route): ReadonlySet<string> =>
  new Set(hosts.length === 0 ? [ANY_HOST] : hosts.map(normalHost));

function* update(
  { cover, byHost: old, routes: oldRoutes }: Before & { byHost: ReadonlyMap<string, HostRoutes> },
  change: CollectionChange<Route>,
  routes: ReadonlyMap<string, Route>,
): Steps<Cover> {
  const edits = new Edits();
  const coveredBy = new Map(cover.coveredBy);
  const again = new Set<string>();
  for (const id of change.removals) {
    const route = oldRoutes.get(id);
    if (route?.enabled === true) edits.leave(route);
    coveredBy.delete(id);
  }
  for (const route of change.upserts) {
    const before = oldRoutes.get(route.id);
    if (before !== undefined && isSameMatch(before, route)) continue;
    if (before?.enabled === true) edits.leave(before);
    coveredBy.delete(route.id);
    if (!route.enabled) continue;
    edits.enter(route);
    again.add(route.id);
    yield;
  }
  const { byHost, seen } = yield* applyEdits(old, edits);
  // When all is new, all routes are compared anyway.
  if (old.size > 0)
    for (const [id, below] of routesBelow(seen, byHost)) {
      if ((routes.get(id)?.priority ?? below) < below) again.add(id);
      yield;
    }
  for (const id of again) {
    const route = routes.get(id);
    const by = route === undefined ? null : covering(route, byHost);
    if (by === null) coveredBy.delete(id);
    else coveredBy.set(id, by.id);
    yield;
  }
  return { coveredBy, byHost, priority: cover.priority };
}

/** `seen`: hosts that a change affects, with the priority below which it affects routes. */
function* applyEdits(
  old: ReadonlyMap<string, HostRoutes>,
  edits: Edits,
): Steps<{ readonly byHost: Map<string, HostRoutes>; readonly seen: Map<string, number> }> {
  const byHost = new Map(old);
  const seen = new Map<string, number>();
  for (const [host, { gone, wides: added, routes }] of edits) {
    const entry = old.get(host) ?? { wides: [], routes: [] };
    const wides = merge(
      entry.wides.filter(({ id }) => !gone.has(id)),
      added.sort(byRank),
    );
    const stay = entry.routes.filter((id) => !gone.has(id));
    const next = { wides, routes: [...stay, ...routes] };
    if (next.wides.length + next.routes.length === 0) byHost.delete(host);
    else byHost.set(host, next);
    const below = firstDifference(entry.wides, wides);
    if (below !== null) seen.set(host, below);
    yield;
  }
  return { byHost, seen };
}

function merge(a: readonly Wide[], b: readonly Wide[]): Wide[] {
  const merged: Wide[] = [];
  let next = 0;
  for (const wide of a) {
    for (let other = b[next]; other !== undefined && byRank(other, wide) < 0; other = b[++next])
      merged.push(other);
    merged.push(wide);
  }
  return merged.concat(b.slice(next));
}

/** The highest priority among the differing routes that a route is compared with; null when none differs. */
function firstDifference(before: readonly Wide[], after: readonly Wide[]): number | null {
  for (let index = 0; index < MAX_TRIES; index++) {
    const [a, b] = [before[index], after[index]];
    if (a === b) continue;
    return Math.max(
      a?.priority ?? Number.NEGATIVE_INFINITY,
      b?.priority ?? Number.NEGATIVE_INFINITY,
    );
  }
  return null;
}

/** Routes that are compared with a host of `seen`, each with the priority below which the change affects it. */
function* routesBelow(
  seen: ReadonlyMap<string, number>,
  byHost: ReadonlyMap<string, HostRoutes>,
): Iterable<[string, number]> {
  const isSeenFromOthers = [...seen.keys()].some(
    (host) => host === ANY_HOST || host.startsWith("*."),
  );
  for (const host of isSeenFromOthers ? byHost.keys() : seen.keys()) {
    const priorities = listsFor(host).flatMap((pattern) => seen.get(pattern) ?? []);
    if (priorities.length === 0) continue;
    const below = Math.max(...priorities);
    for (const id of byHost.get(host)?.routes ?? []) yield [id, below];
  }
}

/** Keys of routes that may hide a route whose first host this is, in this order. */
const listsFor = (host: string): readonly string[] =>
  host === ANY_HOST ? [ANY_HOST] : [ANY_HOST, ...patternsFor(host)];

function covering(route: Route, byHost: ReadonlyMap<string, HostRoutes>): Wide | null {
  const narrow = narrowOf(route);
  let tries = 0;
  for (const pattern of [ANY_HOST, ...(narrow.hosts[0] ?? [])]) {
    for (const wide of byHost.get(pattern)?.wides ?? []) {
      if (wide.priority <= route.priority) break;
      if (++tries > MAX_TRIES) return null;
      if (covers(wide, narrow)) return wide;
    }
  }
  return null;
}
