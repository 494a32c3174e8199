// Finds routes that another route always shadows, in the cases that are certain; knows nothing of matching itself.
import type { CollectionChange } from "./snapshot.ts";
import type { Route } from "../model/route.ts";
import { matchedPaths } from "./matched-paths.ts";
import type { Steps } from "../pace.ts";
import { type Edit, ShardedMap } from "../pdk/sharded-map.ts";
import { type Cover, coverSteps } from "./cover.ts";
import { isOpen } from "./covering.ts";

/** Routes by hosts and paths, and the route that hides each hidden one. */
export interface Shadows {
  /** Ids of enabled routes with the same hosts and paths. */
  readonly groups: ShardedMap<readonly string[]>;
  /** Hidden route -> the route with the same hosts and paths that matches all its requests. */
  readonly hiddenBy: ReadonlyMap<string, string>;
  /** Routes that a route of a higher priority with wider hosts and paths hides. */
  readonly cover: Cover;
}

/** Updates `previous` with a change of the routes; checks only the groups that the change affects. */
export function* shadowSteps(
  previous: { readonly shadows: Shadows; readonly routes: ReadonlyMap<string, Route> } | null,
  change: CollectionChange<Route>,
  routes: ReadonlyMap<string, Route>,
): Steps<Shadows> {
  if (previous !== null && change.upserts.length === 0 && change.removals.length === 0)
    return previous.shadows;
  const edit: Edit = {};
  const groups = (previous?.shadows.groups ?? ShardedMap.empty(edit)).editable(edit);
  const hiddenBy = new Map(previous?.shadows.hiddenBy);
  const touched = new Set<string>();
  const leave = (id: string) => {
    hiddenBy.delete(id);
    const old = previous?.routes.get(id);
    if (old?.enabled !== true) return;
    const key = keyOf(old);
    const rest = (groups.get(key) ?? []).filter((other) => other !== id);
    if (rest.length === 0) groups.delete(key);
    else groups.set(key, rest);
    touched.add(key);
  };
  for (const id of change.removals) {
    leave(id);
    yield;
  }
  for (const { id } of change.upserts) {
    leave(id);
    yield;
  }
  const grown = new Map<string, string[]>();
  for (const route of change.upserts) {
    if (!route.enabled) continue;
    const key = keyOf(route);
    const group = grown.get(key) ?? [...(groups.get(key) ?? [])];
    group.push(route.id);
    grown.set(key, group);
    touched.add(key);
    yield;
  }
  for (const [key, group] of grown) groups.set(key, group);
  for (const key of touched) {
    hide(
      (groups.get(key) ?? []).flatMap((id) => routes.get(id) ?? []),
      hiddenBy,
    );
    yield;
  }
  const before = previous === null ? null : { ...previous, cover: previous.shadows.cover };
  return { groups, hiddenBy, cover: yield* coverSteps(before, change, routes) };
}

/** Finds the hidden routes of one group. */
function hide(members: readonly Route[], hiddenBy: Map<string, string>): void {
  // In the order of matching, so that the first one that fits ends the search.
  const open = members.filter(isOpen).sort((a, b) => b.priority - a.priority || byAge(a, b));
  for (const route of members) {
    const by = hiderOf(route, open);
    if (by === null) hiddenBy.delete(route.id);
    else hiddenBy.set(route.id, by.id);
  }
}

function keyOf(route: Route): string {
  const hosts = route.hosts.map((host) => host.toLowerCase()).sort();
  const paths = matchedPaths(route)
    .map(({ type, value }) => `${type} ${value}`)
    .sort();
  return JSON.stringify([hosts, paths]);
}

/** A higher priority wins first; between equals more conditions win, then the older. */
function hiderOf(route: Route, open: readonly Route[]): Route | null {
  for (const other of open) {
    if (other === route || other.priority < route.priority) return null;
    if (!route.protocols.every((protocol) => other.protocols.includes(protocol))) continue;
    if (other.priority > route.priority) return other;
    const sameProtocols = other.protocols.length === route.protocols.length;
    if (isOpen(route) && sameProtocols) return other;
  }
  return null;
}

function byAge(a: Route, b: Route): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
