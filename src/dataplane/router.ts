// Finds the route that takes a request; knows patterns and their order, nothing of services, plugins or sockets.
import type { Route } from "../model/route.ts";
import { comparablePath } from "../http/request-target.ts";
import { type RouteSubject, compileMatch } from "./router/compiled-match.ts";
import { type Standing, standingsOf } from "./router/candidates.ts";
import { type Candidate, PathIndex, type Search } from "./router/path-index.ts";
import { compareRank } from "./router/ranked-list.ts";
import { type Edit, ShardedMap } from "./router/sharded-map.ts";

interface Entry<R> extends Candidate {
  readonly value: R;
}

const NO_SUBJECT: RouteSubject = {
  ...{ method: "", host: "", path: "", query: "", protocol: "http", listenerId: "" },
  header: () => null,
  clientAddress: () => "",
};

/** Routes to add or replace (by id), and ids to remove. */
export interface RouterChanges<R> {
  readonly upserts: readonly R[];
  readonly removals: readonly string[];
}

interface Parts<R> {
  entries: ShardedMap<Entry<R>>;
  exactHosts: ShardedMap<PathIndex<Entry<R>>>;
  hostSuffixes: ShardedMap<PathIndex<Entry<R>>>;
  anyHost: PathIndex<Entry<R>> | null;
  /** How many enabled routes have each priority. */
  priorities: Map<number, number>;
}

/**
 * An immutable routing table. Order: priority (higher first), then exact host, wildcard host (longest suffix first), any
 * host, then exact path, longer prefix, regular expression, any path, then more conditions, then the older route.
 *
 * - `*.example.com` matches every name below example.com at any depth, as in Envoy, nginx and the Gateway API, and not
 *   example.com itself.
 * - A prefix matches on segment borders; its trailing slash does not count, so `/api/` takes `/api` too (Gateway API):
 *   a rule for `/admin/` must not be missed by leaving the slash out. The prefix `/` is the same as no path.
 * - Paths, also for regular expressions, are compared in the form that `comparablePath` describes.
 * - Disabled routes never match.
 */
export class Router<R extends { readonly route: Route }> {
  readonly #parts: Parts<R>;
  /** When what was found has it, nothing less specific can win: the usual case of equal priorities stops at the first hit. */
  readonly #highestPriority: number;

  /** One for all requests: a search ends before the next one begins. */
  readonly #search: Search = { subject: NO_SUBJECT, path: "", floor: 0 };

  private constructor(parts: Parts<R>) {
    this.#parts = parts;
    this.#highestPriority = [...parts.priorities.keys()].reduce(
      (a, b) => Math.max(a, b),
      -Infinity,
    );
  }

  static empty<R extends { readonly route: Route }>(): Router<R> {
    const edit: Edit = {};
    return new Router<R>({
      entries: ShardedMap.empty(edit),
      exactHosts: ShardedMap.empty(edit),
      hostSuffixes: ShardedMap.empty(edit),
      anyHost: null,
      priorities: new Map(),
    });
  }

  static of<R extends { readonly route: Route }>(list: readonly R[]): Router<R> {
    return Router.empty<R>().with({ upserts: list, removals: [] });
  }

  /** Number of routes, disabled ones included. */
  get size(): number {
    return this.#parts.entries.size;
  }

  /**
   * The table with the changes made. This one goes on answering as before, and the two share all that did not change, so
   * the cost follows the size of the change. Removals come first; an unknown id is ignored, and of several upserts
   * with one id the last counts.
   */
  with(changes: RouterChanges<R>): Router<R> {
    const edit: Edit = {};
    const parts: Parts<R> = {
      entries: this.#parts.entries.editable(edit),
      exactHosts: this.#parts.exactHosts.editable(edit),
      hostSuffixes: this.#parts.hostSuffixes.editable(edit),
      anyHost: this.#parts.anyHost,
      priorities: new Map(this.#parts.priorities),
    };
    for (const id of changes.removals) removeEntry(parts, id, edit);
    const upserts = new Map(changes.upserts.map((value) => [value.route.id, value]));
    // In rank order each one lands at the end of its lists, which spares a large first fill the shifting.
    for (const entry of [...upserts.values()].map(entryOf).sort(compareRank)) {
      removeEntry(parts, entry.id, edit);
      parts.entries.set(entry.id, entry);
      if (entry.match.enabled) placeEntry(parts, entry, edit);
    }
    return new Router(parts);
  }

  /** For people: how the `most` routes that came closest stand to the request, in the order in which they are tried. */
  standings(subject: RouteSubject, most: number): readonly (Standing<Candidate> & { value: R })[] {
    return standingsOf(this.#parts.entries.values(), subject, most).map((standing) => ({
      ...standing,
      value: standing.entry.value,
    }));
  }

  /** The value of the route that takes the request, null when none does. */
  match(subject: RouteSubject): R | null {
    const { exactHosts, hostSuffixes, anyHost } = this.#parts;
    const { host } = subject;
    const search = this.#search;
    search.subject = subject;
    search.path = comparablePath(subject.path);
    search.floor = -Infinity;
    let best: Entry<R> | null = null;
    if (exactHosts.size > 0) {
      best = exactHosts.get(host)?.find(search) ?? null;
      if (search.floor === this.#highestPriority) return best?.value ?? null;
    }
    if (hostSuffixes.size > 0) {
      for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
        best = hostSuffixes.get(host.slice(dot + 1))?.find(search) ?? best;
        if (search.floor === this.#highestPriority) return best?.value ?? null;
      }
    }
    if (anyHost !== null) best = anyHost.find(search) ?? best;
    return best?.value ?? null;
  }
}

function entryOf<R extends { readonly route: Route }>(value: R): Entry<R> {
  const { route } = value;
  const match = compileMatch(route);
  return {
    value,
    match,
    priority: route.priority,
    conditions: match.conditions.length,
    createdAt: route.created_at,
    id: route.id,
  };
}

function placeEntry<R>(parts: Parts<R>, entry: Entry<R>, edit: Edit): void {
  const { exactHosts: hosts, hostSuffixes: suffixes } = entry.match;
  for (const [keys, map] of [
    [hosts, parts.exactHosts],
    [suffixes, parts.hostSuffixes],
  ] as const) {
    for (const key of keys) {
      const index = map.get(key)?.editable(edit) ?? new PathIndex<Entry<R>>(edit);
      index.add(entry);
      map.set(key, index);
    }
  }
  if (hosts.length === 0 && suffixes.length === 0) {
    parts.anyHost = parts.anyHost?.editable(edit) ?? new PathIndex<Entry<R>>(edit);
    parts.anyHost.add(entry);
  }
  parts.priorities.set(entry.priority, (parts.priorities.get(entry.priority) ?? 0) + 1);
}

function removeEntry<R>(parts: Parts<R>, id: string, edit: Edit): void {
  const entry = parts.entries.get(id);
  if (entry === undefined) return;
  parts.entries.delete(id);
  if (!entry.match.enabled) return;
  const { exactHosts: hosts, hostSuffixes: suffixes } = entry.match;
  for (const [keys, map] of [
    [hosts, parts.exactHosts],
    [suffixes, parts.hostSuffixes],
  ] as const) {
    for (const key of keys) {
      const index = map.get(key)?.editable(edit);
      if (index === undefined) continue;
      index.remove(entry);
      if (index.isEmpty) map.delete(key);
      else map.set(key, index);
    }
  }
  if (hosts.length === 0 && suffixes.length === 0 && parts.anyHost !== null) {
    const index = parts.anyHost.editable(edit);
    index.remove(entry);
    parts.anyHost = index.isEmpty ? null : index;
  }
  const left = (parts.priorities.get(entry.priority) ?? 1) - 1;
  if (left === 0) parts.priorities.delete(entry.priority);
  else parts.priorities.set(entry.priority, left);
}
