// Finds the route that matches a request; knows patterns and their order, nothing of services, plugins or sockets.
import type { Route } from "../model/route.ts";
import { comparablePath } from "../http/request-target.ts";
import { type RouteSubject, compileMatch } from "./router/compiled-match.ts";
import { type CandidateRank, rankCandidates } from "./router/candidates.ts";
import { type RouteCandidate, PathIndex, type Search } from "./router/path-index.ts";
import { type Edit, ShardedMap } from "../pdk/sharded-map.ts";

/** A route in the table: its compiled match, and a value of the table's owner. */
export interface RouterEntry<V> extends RouteCandidate {
  value: V;
}

const NO_SUBJECT: RouteSubject = {
  method: "",
  host: "",
  path: "",
  query: "",
  protocol: "http",
  listenerId: "",
  header: () => null,
  clientAddress: () => "",
};

interface Parts<V> {
  entries: ShardedMap<RouterEntry<V>>;
  exactHosts: ShardedMap<PathIndex<RouterEntry<V>>>;
  hostSuffixes: ShardedMap<PathIndex<RouterEntry<V>>>;
  anyHost: PathIndex<RouterEntry<V>> | null;
  /** How many enabled routes have each priority. */
  priorities: Map<number, number>;
}

/**
 * An immutable routing table. Order: priority (higher first), then exact host, wildcard host (longest suffix first), any
 * host, then exact path, longer prefix, regular expression, any path, then more conditions, then the older route.
 *
 * - `*.example.com` matches every name below example.com at any depth, as in Envoy, nginx and the Gateway API, and not
 *   example.com itself.
 * - A prefix matches on segment borders; its trailing slash does not count, so `/api/` matches `/api` too (Gateway API):
 *   a rule for `/admin/` must not be missed by leaving the slash out. The prefix `/` is the same as no path.
 * - Paths, also for regular expressions, are compared in the form that `comparablePath` describes.
 * - Disabled routes never match.
 */
export class Router<V> {
  readonly #parts: Parts<V>;
  /** A match with this priority ends the search: with equal priorities, the first one. */
  readonly #highestPriority: number;
  readonly #hasExactHosts: boolean;
  readonly #hasHostSuffixes: boolean;

  /** One for all requests: a search ends before the next one begins. */
  readonly #search: Search = { subject: NO_SUBJECT, path: "", floor: 0 };

  /** Use `empty` and `edit`. */
  constructor(parts: Parts<V>) {
    this.#parts = parts;
    this.#hasExactHosts = parts.exactHosts.size > 0;
    this.#hasHostSuffixes = parts.hostSuffixes.size > 0;
    this.#highestPriority = [...parts.priorities.keys()].reduce(
      (a, b) => Math.max(a, b),
      -Infinity,
    );
  }

  static empty<V>(): Router<V> {
    const edit: Edit = {};
    return new Router<V>({
      entries: ShardedMap.empty(edit),
      exactHosts: ShardedMap.empty(edit),
      hostSuffixes: ShardedMap.empty(edit),
      anyHost: null,
      priorities: new Map(),
    });
  }

  /** Number of routes, disabled ones included. */
  get size(): number {
    return this.#parts.entries.size;
  }

  /**
   * Begins the next table. This one does not change, and the two share all that is equal, so the
   * cost follows the size of the change.
   */
  edit(): RouterEdit<V> {
    return new RouterEdit(this, this.#parts);
  }

  /** For `explain`: the `most` routes that came closest, in the order of matching. */
  rankCandidates(subject: RouteSubject, most: number): readonly CandidateRank<RouterEntry<V>>[] {
    return rankCandidates(this.#parts.entries.values(), subject, most);
  }

  /** The route that matches the request, null when none does. */
  match(subject: RouteSubject): RouterEntry<V> | null {
    const { exactHosts, hostSuffixes, anyHost } = this.#parts;
    const { host } = subject;
    const search = this.#search;
    search.subject = subject;
    search.path = comparablePath(subject.path);
    search.floor = -Infinity;
    let best: RouterEntry<V> | null = null;
    if (this.#hasExactHosts) {
      best = exactHosts.get(host)?.find(search) ?? null;
      if (search.floor === this.#highestPriority) return best;
    }
    if (this.#hasHostSuffixes) {
      for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
        best = hostSuffixes.get(host.slice(dot + 1))?.find(search) ?? best;
        if (search.floor === this.#highestPriority) return best;
      }
    }
    if (anyHost !== null) best = anyHost.find(search) ?? best;
    return best;
  }
}

/** The next table while it is built. */
export class RouterEdit<V> {
  readonly #edit: Edit = {};
  readonly #parts: Parts<V>;
  readonly #before: Router<V>;
  #isChanged = false;

  constructor(
    before: Router<V>,
    { entries, exactHosts, hostSuffixes, anyHost, priorities }: Parts<V>,
  ) {
    const edit = this.#edit;
    this.#before = before;
    this.#parts = {
      entries: entries.editable(edit),
      exactHosts: exactHosts.editable(edit),
      hostSuffixes: hostSuffixes.editable(edit),
      anyHost,
      priorities: new Map(priorities),
    };
  }

  /** Adds the route or replaces the one with its id. */
  add(route: Route, value: V): void {
    const { id, priority, created_at: createdAt } = route;
    const match = compileMatch(route);
    const entry = { id, priority, createdAt, match, conditions: match.conditions.length, value };
    this.remove(id);
    this.#parts.entries.set(id, entry);
    if (match.enabled) placeEntry(this.#parts, entry, this.#edit);
  }

  /** An unknown id is ignored. */
  remove(id: string): void {
    this.#isChanged = true;
    removeEntry(this.#parts, id, this.#edit);
  }

  /** The new table; the old one without changes. The edit ends here. */
  finish(): Router<V> {
    return this.#isChanged ? new Router(this.#parts) : this.#before;
  }
}

function placeEntry<V>(parts: Parts<V>, entry: RouterEntry<V>, edit: Edit): void {
  const { exactHosts: hosts, hostSuffixes: suffixes } = entry.match;
  for (const [keys, map] of [
    [hosts, parts.exactHosts],
    [suffixes, parts.hostSuffixes],
  ] as const) {
    for (const key of keys) {
      const index = map.get(key)?.editable(edit) ?? new PathIndex<RouterEntry<V>>(edit);
      index.add(entry);
      map.set(key, index);
    }
  }
  if (hosts.length === 0 && suffixes.length === 0) {
    parts.anyHost = parts.anyHost?.editable(edit) ?? new PathIndex<RouterEntry<V>>(edit);
    parts.anyHost.add(entry);
  }
  parts.priorities.set(entry.priority, (parts.priorities.get(entry.priority) ?? 0) + 1);
}

function removeEntry<V>(parts: Parts<V>, id: string, edit: Edit): void {
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
