// Candidates of one host and path pattern in the order of matching; knows nothing of matching.
import type { Edit } from "../../pdk/sharded-map.ts";

/** Decides between candidates with the same host and path pattern. */
export interface Ranked {
  readonly priority: number;
  /** Number of further conditions. */
  readonly conditions: number;
  /** RFC 3339 in UTC, so that text order is time order. */
  readonly createdAt: string;
  readonly id: string;
}

/** Negative when `a` is tried before `b`: higher priority, more conditions, older, then the id so that the order is total. */
export function compareRank(a: Ranked, b: Ranked): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.conditions !== b.conditions) return b.conditions - a.conditions;
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** A sorted list with the copy-before-change rule of `Edit`. */
export interface RankedList<E extends Ranked> {
  readonly edit: Edit;
  readonly items: E[];
}

/** Inserts an item at its sorted position. */
export function withItem<E extends Ranked>(
  list: RankedList<E> | null,
  item: E,
  edit: Edit,
): RankedList<E> {
  const { items } = editable(list, edit);
  items.splice(positionOf(items, item), 0, item);
  return { edit, items };
}

/** Removes an item; null when it was the last. */
export function withoutItem<E extends Ranked>(
  list: RankedList<E> | null,
  item: E,
  edit: Edit,
): RankedList<E> | null {
  const { items } = editable(list, edit);
  const index = positionOf(items, item);
  if (items[index]?.id === item.id) items.splice(index, 1);
  return items.length === 0 ? null : { edit, items };
}

function editable<E extends Ranked>(list: RankedList<E> | null, edit: Edit): RankedList<E> {
  return list?.edit === edit ? list : { edit, items: list === null ? [] : list.items.slice() };
}

/** Binary search. */
function positionOf<E extends Ranked>(items: readonly E[], item: E): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = items[middle];
    if (other !== undefined && compareRank(other, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
