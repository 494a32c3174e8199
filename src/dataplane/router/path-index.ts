// The routes of one host pattern by path: a tree of segments, then regular expressions, then those for any path; knows no hosts.
import { type CompiledMatch, type RouteSubject, firstFailedCondition } from "./compiled-match.ts";
import { type Ranked, type RankedList, withItem, withoutItem } from "./ranked-list.ts";
import { type Edit, ShardedMap } from "../../pdk/sharded-map.ts";

/** A route in the index. */
export interface RouteCandidate extends Ranked {
  readonly match: CompiledMatch;
}

/** One lookup. */
export interface Search {
  subject: RouteSubject;
  /** Comparable form of the subject's path. */
  path: string;
  /** Priority that a candidate must exceed: the search goes from the most specific pattern on, so later ones win by priority only. */
  floor: number;
}

interface PathNode<E extends RouteCandidate> {
  readonly edit: Edit;
  children: ShardedMap<PathNode<E>> | null;
  exact: RankedList<E> | null;
  prefix: RankedList<E> | null;
}

/** All candidates that share a host pattern. */
export class PathIndex<E extends RouteCandidate> {
  readonly #edit: Edit;
  #root: PathNode<E>;
  #regex: RankedList<E> | null = null;
  #any: RankedList<E> | null = null;

  constructor(edit: Edit) {
    this.#edit = edit;
    this.#root = emptyNode(edit);
  }

  /** The best candidate above the floor, null when there is none; raises the floor to its priority. */
  find(search: Search): E | null {
    let best = this.#root.children === null ? null : findBelow(this.#root, search, 1);
    if (this.#regex !== null) best = firstByRegex(this.#regex.items, search) ?? best;
    if (this.#any !== null) best = firstIn(this.#any.items, search) ?? best;
    return best;
  }

  get isEmpty(): boolean {
    return isEmptyNode(this.#root) && this.#regex === null && this.#any === null;
  }

  /** This index if `edit` made it, else a copy that `edit` may change. */
  editable(edit: Edit): PathIndex<E> {
    if (edit === this.#edit) return this;
    const copy = new PathIndex<E>(edit);
    copy.#root = editableNode(this.#root, edit);
    copy.#regex = this.#regex;
    copy.#any = this.#any;
    return copy;
  }

  /** Adds the candidate under each of its paths; only on an index that belongs to the current edit. */
  add(item: E): void {
    this.#change(item, withItem);
  }

  /** Undoes `add`. */
  remove(item: E): void {
    this.#change(item, withoutItem);
  }

  #change(item: E, change: Change<E>): void {
    const { match } = item;
    const edit = this.#edit;
    for (const path of match.exactPaths) {
      changeNode(this.#root, path, (node) => {
        node.exact = change(node.exact, item, edit);
      });
    }
    for (const path of match.pathPrefixes) {
      changeNode(this.#root, path, (node) => {
        node.prefix = change(node.prefix, item, edit);
      });
    }
    if (match.pathRegexes.length > 0) this.#regex = change(this.#regex, item, edit);
    if (match.anyPath) this.#any = change(this.#any, item, edit);
  }
}

type Change<E extends RouteCandidate> = (
  list: RankedList<E> | null,
  item: E,
  edit: Edit,
) => RankedList<E> | null;

function emptyNode<E extends RouteCandidate>(edit: Edit): PathNode<E> {
  return { edit, children: null, exact: null, prefix: null };
}

function isEmptyNode(node: PathNode<RouteCandidate>): boolean {
  return node.children === null && node.exact === null && node.prefix === null;
}

function editableNode<E extends RouteCandidate>(node: PathNode<E>, edit: Edit): PathNode<E> {
  return node.edit === edit ? node : { ...node, edit };
}

/** Applies a change to the node of a path: makes the nodes on the way editable and drops empty ones. */
function changeNode<E extends RouteCandidate>(
  root: PathNode<E>,
  path: string,
  change: (node: PathNode<E>) => void,
): void {
  const segments = path.slice(1).split("/");
  const trail: PathNode<E>[] = [root];
  let node = root;
  for (const segment of segments) {
    const children = node.children?.editable(root.edit) ?? ShardedMap.empty<PathNode<E>>(root.edit);
    const child = children.get(segment);
    const next = child === undefined ? emptyNode<E>(root.edit) : editableNode(child, root.edit);
    children.set(segment, next);
    node.children = children;
    trail.push(next);
    node = next;
  }
  change(node);
  for (let i = segments.length - 1; i >= 0; i--) {
    const parent = trail[i];
    const child = trail[i + 1];
    if (parent === undefined || child === undefined || !isEmptyNode(child)) return;
    parent.children?.delete(segments[i] ?? "");
    if (parent.children?.size === 0) parent.children = null;
  }
}

/** The best candidate of a node and its children; `start` is where the next segment begins, past the end at the last one. */
function findBelow<E extends RouteCandidate>(
  node: PathNode<E>,
  search: Search,
  start: number,
): E | null {
  const { path } = search;
  let best: E | null = null;
  if (start > path.length) {
    if (node.exact !== null) best = firstIn(node.exact.items, search);
  } else if (node.children !== null) {
    let end = path.indexOf("/", start);
    if (end < 0) end = path.length;
    const child = node.children.get(path.slice(start, end));
    if (child !== undefined) best = findBelow(child, search, end + 1);
  }
  if (node.prefix !== null) best = firstIn(node.prefix.items, search) ?? best;
  return best;
}

function firstIn<E extends RouteCandidate>(items: readonly E[], search: Search): E | null {
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (item === undefined || item.priority <= search.floor) return null;
    if (holds(item, search)) return item;
  }
  return null;
}

function firstByRegex<E extends RouteCandidate>(items: readonly E[], search: Search): E | null {
  for (const item of items) {
    if (item.priority <= search.floor) return null;
    if (matchesAny(item.match.pathRegexes, search.path) && holds(item, search)) return item;
  }
  return null;
}

/** A loop, because `some` would allocate a closure per request. */
function matchesAny(regexes: readonly RegExp[], path: string): boolean {
  for (const regex of regexes) if (regex.test(path)) return true;
  return false;
}

function holds(item: RouteCandidate, search: Search): boolean {
  const { conditions } = item.match;
  if (conditions.length > 0 && firstFailedCondition(conditions, search.subject) !== null) {
    return false;
  }
  search.floor = item.priority;
  return true;
}
