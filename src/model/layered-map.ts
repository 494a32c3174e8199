// A map of very many objects that is cheap to change by copy: rows that stay, and what was written since; knows no collection.
import type { Identity } from "./fields.ts";
import { PackedRows } from "./packed-rows.ts";
import type { IndexOf } from "./rows.ts";
import { PlainRows } from "./plain-rows.ts";
import type { Rows } from "./rows.ts";

/** What differs between two maps. */
interface Difference<T> {
  readonly upserts: readonly T[];
  readonly removals: readonly string[];
}

/** Of more objects than these, a copy with each change would cost more than the change. */
export const MANY = 1_000;

/** So many objects are copied with each change, at most. */
const MAX_RECENT = 256;
/** So many objects beside the rows are never too many. */
const MIN_SETTLED = 4_096;

/**
 * Objects by id, in the order of their age. Where the rows are packed, each read creates the object anew: equal objects need not
 * be the same. Only a draft can be changed.
 */
export class LayeredMap<T extends Identity> implements ReadonlyMap<string, T> {
  readonly #rows: Rows<T>;
  readonly #settled: Layer<T>;
  readonly #recent: Layer<T>;
  #size: number;
  /** What this was made from, and what was written since. */
  readonly #from: WeakRef<LayeredMap<T>> | null;
  #written = new Set<string>();

  private constructor(
    rows: Rows<T>,
    layers: { readonly settled: Layer<T>; readonly recent: Layer<T>; readonly size: number },
    from: LayeredMap<T> | null,
  ) {
    this.#rows = rows;
    this.#settled = layers.settled;
    this.#recent = layers.recent;
    this.#size = layers.size;
    this.#from = from === null ? null : new WeakRef(from);
  }

  /** The rows must be in the order of their age. */
  static ofRows<T extends Identity>(rows: Rows<T>): LayeredMap<T> {
    return new LayeredMap(
      rows,
      { settled: new Layer(), recent: new Layer(), size: rows.size },
      null,
    );
  }

  /** `indexes`: packs the objects, and finds them by these alone; null: they stay as they are, and are found by anything. */
  static of<T extends Identity>(
    objects: Iterable<T>,
    indexes: readonly IndexOf<T>[] | null,
  ): LayeredMap<T> {
    const sorted = [...objects].sort(byAge);
    return LayeredMap.ofRows(
      indexes === null ? new PlainRows(sorted) : PackedRows.of(sorted, indexes),
    );
  }

  get size(): number {
    return this.#size;
  }

  /** The latest time at which one of them was created or changed, in milliseconds since 1970; those that are gone count too. */
  get latest(): number {
    let latest = this.#rows.latest;
    for (const layer of [this.#settled, this.#recent])
      for (const object of layer.objects.values())
        if (object !== null)
          for (const time of [object.created_at, object.updated_at])
            latest = Math.max(latest, Date.parse(time) || 0);
    return latest;
  }

  get(id: string): T | undefined {
    const written = this.#layered(id);
    if (written !== undefined) return written ?? undefined;
    const row = this.#rows.rowOf(id);
    return row < 0 ? undefined : this.#rows.at(row);
  }

  has(id: string): boolean {
    const written = this.#layered(id);
    return written === undefined ? this.#rows.rowOf(id) >= 0 : written !== null;
  }

  /** Those of which the index says `value`, except the one with the id `except`; undefined: there is no such index. */
  find(indexOf: IndexOf<T>, value: string, except: string | null = null): T[] | undefined {
    const stored = this.#rows.find(indexOf, value, except);
    if (stored === undefined) return undefined;
    if (this.#isAllRows()) return stored.reverse();
    const found = stored.filter(({ id }) => this.#layered(id) === undefined);
    const ids = new Set([
      ...this.#settled.idsOf(indexOf, value),
      ...this.#recent.idsOf(indexOf, value),
    ]);
    for (const id of ids) {
      const object = this.#layered(id) ?? null;
      if (id !== except && object !== null && indexOf(object) === value) found.push(object);
    }
    return found.length > 1 ? found.sort(byAge) : found;
  }

  /** A draft: a copy that its creator may change. */
  draft(): LayeredMap<T> {
    const recent = this.#recent.objects;
    if (recent.size <= MAX_RECENT)
      return new LayeredMap(this.#rows, { ...this.#layers(), recent: new Layer(recent) }, this);
    const settled = new Layer([...this.#settled.objects, ...recent]);
    if (settled.objects.size <= Math.max(MIN_SETTLED, this.#rows.size / 4))
      return new LayeredMap(this.#rows, { settled, recent: new Layer(), size: this.#size }, this);
    return new LayeredMap(this.#rows.withRows(this.values()), this.#noLayers(), this);
  }

  /** A draft with many writes, all of them moved into rows: otherwise the next change would have to do that. */
  settled(): LayeredMap<T> {
    if (this.#recent.objects.size <= MIN_SETTLED) return this;
    const rows = this.#rows.withRows(this.values());
    const settled = new LayeredMap(rows, this.#noLayers(), this.#from?.deref() ?? null);
    settled.#written = this.#written;
    return settled;
  }

  /** Only of a draft. */
  set(id: string, object: T): this {
    if (!this.has(id)) this.#size++;
    this.#recent.set(id, object);
    this.#written.add(id);
    return this;
  }

  /** Only of a draft. */
  delete(id: string): boolean {
    if (!this.has(id)) return false;
    this.#size--;
    this.#recent.set(id, null);
    this.#written.add(id);
    return true;
  }

  /** What differs from the version that this was made from; null: it was made from another one. */
  changesSince(before: ReadonlyMap<string, T>): Difference<T> | null {
    if (this.#from?.deref() !== before) return null;
    const ids = [...this.#written];
    return {
      upserts: ids.flatMap((id) => this.get(id) ?? []),
      removals: ids.filter((id) => !this.has(id) && before.has(id)),
    };
  }

  *values(): Generator<T, undefined> {
    if (this.#isAllRows()) {
      for (let row = 0; row < this.#rows.size; row++) yield this.#rows.at(row);
      return undefined;
    }
    const added = this.#added();
    let next = 0;
    for (let row = 0; row < this.#rows.size; row++) {
      const stored = this.#rows.at(row);
      const written = this.#layered(stored.id);
      if (written === null) continue;
      const object = written ?? stored;
      // Nearly always what was added is younger than all rows.
      for (; next < added.length; next++) {
        const other = added[next];
        if (other === undefined || byAge(other, object) > 0) break;
        yield other;
      }
      yield object;
    }
    for (; next < added.length; next++) yield added[next] as T;
    return undefined;
  }

  *keys(): Generator<string, undefined> {
    for (const { id } of this.values()) yield id;
    return undefined;
  }

  *entries(): Generator<[string, T], undefined> {
    for (const object of this.values()) yield [object.id, object];
    return undefined;
  }

  [Symbol.iterator](): Generator<[string, T], undefined> {
    return this.entries();
  }

  forEach(visit: (object: T, id: string, map: ReadonlyMap<string, T>) => void): void {
    for (const object of this.values()) visit(object, object.id, this);
  }

  #isAllRows(): boolean {
    return this.#settled.objects.size + this.#recent.objects.size === 0;
  }

  #noLayers() {
    return { settled: new Layer<T>(), recent: new Layer<T>(), size: this.#size };
  }

  #layers() {
    return { settled: this.#settled, recent: this.#recent, size: this.#size };
  }

  /** What was written under the id; null: it is gone; undefined: nothing was. */
  #layered(id: string): T | null | undefined {
    const recent = this.#recent.objects.get(id);
    return recent === undefined ? this.#settled.objects.get(id) : recent;
  }

  /** What is in no row, oldest first. */
  #added(): T[] {
    const ids = new Set([...this.#settled.objects.keys(), ...this.#recent.objects.keys()]);
    const added: T[] = [];
    for (const id of ids) {
      const object = this.#layered(id) ?? null;
      if (object !== null && this.#rows.rowOf(id) < 0) added.push(object);
    }
    return added.sort(byAge);
  }
}

/** Those of which the index says `value`, except the one with the id `except`; all are looked through where there is no index. */
export function findBy<T extends Identity>(
  objects: ReadonlyMap<string, T>,
  indexOf: IndexOf<T>,
  { value, except = null }: { readonly value: string; readonly except?: string | null },
): T[] {
  const found = objects instanceof LayeredMap ? objects.find(indexOf, value, except) : undefined;
  if (found !== undefined) return found;
  return [...objects.values()].filter(
    (object) => object.id !== except && indexOf(object) === value,
  );
}

/** Everywhere the order is that of creation. Objects of the same time are those of one change: their ids tell which came first. */
export function byAge(a: Identity, b: Identity): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/** Objects that were written, by id; null: gone. Indexes are made when they are first asked for. */
class Layer<T extends Identity> {
  readonly objects: Map<string, T | null>;
  readonly #indexes = new Map<IndexOf<T>, Map<string, Set<string>>>();

  constructor(objects: Iterable<readonly [string, T | null]> = []) {
    this.objects = new Map(objects);
  }

  set(id: string, object: T | null): void {
    this.objects.set(id, object);
    if (object === null) return;
    for (const [indexOf, index] of this.#indexes) note(index, indexOf(object), id);
  }

  /** All of which the index says `value`, and some of which it did before. */
  idsOf(indexOf: IndexOf<T>, value: string): Iterable<string> {
    if (this.objects.size === 0) return [];
    let index = this.#indexes.get(indexOf);
    if (index === undefined) {
      index = new Map();
      for (const [id, object] of this.objects)
        if (object !== null) note(index, indexOf(object), id);
      this.#indexes.set(indexOf, index);
    }
    return index.get(value) ?? [];
  }
}

function note(index: Map<string, Set<string>>, value: string | null, id: string): void {
  if (value === null) return;
  const ids = index.get(value);
  if (ids === undefined) index.set(value, new Set([id]));
  else ids.add(id);
}
