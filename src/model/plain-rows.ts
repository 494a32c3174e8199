// Many objects as they are, found by id and by index; knows no collection and no change.
import type { Rows } from "./rows.ts";
import type { Identity } from "./fields.ts";
import type { IndexOf } from "./rows.ts";

/** The same object each time, so that what did not change is known by being the same. Indexes are made when they are first asked for. */
export class PlainRows<T extends Identity> implements Rows<T> {
  readonly #objects: readonly T[];
  readonly #rows = new Map<string, number>();
  readonly #indexes = new Map<IndexOf<T>, Map<string, number[]>>();

  constructor(objects: Iterable<T>) {
    this.#objects = [...objects];
    for (const [row, { id }] of this.#objects.entries()) this.#rows.set(id, row);
  }

  get size(): number {
    return this.#objects.length;
  }

  get latest(): number {
    let [latest, seen] = [0, ""];
    for (const { created_at, updated_at } of this.#objects)
      for (const time of [created_at, updated_at]) {
        // Most repeat the time before.
        if (time === seen) continue;
        seen = time;
        latest = Math.max(latest, Date.parse(time) || 0);
      }
    return latest;
  }

  at(row: number): T {
    return this.#objects[row] as T;
  }

  rowOf(id: string): number {
    return this.#rows.get(id) ?? -1;
  }

  find(indexOf: IndexOf<T>, value: string, except: string | null): T[] {
    const rows = this.#index(indexOf).get(value) ?? [];
    return rows
      .map((row) => this.at(row))
      .filter(({ id }) => id !== except)
      .reverse();
  }

  withRows(objects: Iterable<T>): PlainRows<T> {
    return new PlainRows(objects);
  }

  #index(indexOf: IndexOf<T>): Map<string, number[]> {
    let index = this.#indexes.get(indexOf);
    if (index !== undefined) return index;
    index = new Map();
    for (const [row, object] of this.#objects.entries()) {
      const value = indexOf(object);
      if (value === null) continue;
      const rows = index.get(value);
      if (rows === undefined) index.set(value, [row]);
      else rows.push(row);
    }
    this.#indexes.set(indexOf, index);
    return index;
  }
}
