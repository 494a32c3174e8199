// A map that can be copied cheaply while it is large; knows nothing of routes.

/**
 * The mark of one batch of changes. What carries the mark was created by that batch and may still be changed in place;
 * everything else belongs to an older version that goes on answering, and is copied first.
 */
export type Edit = object;

interface Shard<V> {
  readonly edit: Edit;
  readonly map: Map<string, V>;
}

const SHARDS = 256;
const SPLIT_AT = 512;

/**
 * String keys to values. A version is changed through `editable`, which copies only the shard that a change touches:
 * copying one Map of 10,000 entries takes 0.4 ms, which a single changed route must not cost.
 */
export class ShardedMap<V> {
  readonly #edit: Edit;
  #shards: Shard<V>[];
  #size: number;

  private constructor(edit: Edit, shards: Shard<V>[], size: number) {
    this.#edit = edit;
    this.#shards = shards;
    this.#size = size;
  }

  static empty<V>(edit: Edit): ShardedMap<V> {
    return new ShardedMap<V>(edit, [{ edit, map: new Map() }], 0);
  }

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    const shards = this.#shards;
    return shards[shards.length === 1 ? 0 : shardOf(key)]?.map.get(key);
  }

  *values(): Generator<V> {
    for (const { map } of this.#shards) yield* map.values();
  }

  /** This version when the batch made it, else a copy that the batch may change. */
  editable(edit: Edit): ShardedMap<V> {
    return edit === this.#edit ? this : new ShardedMap(edit, this.#shards.slice(), this.#size);
  }

  /** Only on a version that `editable` or `empty` gave to the batch under way. */
  set(key: string, value: V): void {
    const map = this.#ownMap(key);
    const before = map.size;
    map.set(key, value);
    this.#size += map.size - before;
    if (this.#shards.length === 1 && map.size > SPLIT_AT) this.#split(map);
  }

  /** Only on a version that `editable` or `empty` gave to the batch under way. */
  delete(key: string): void {
    if (this.#ownMap(key).delete(key)) this.#size--;
  }

  #ownMap(key: string): Map<string, V> {
    const index = this.#shards.length === 1 ? 0 : shardOf(key);
    const shard = this.#shards[index];
    if (shard?.edit === this.#edit) return shard.map;
    const map = new Map(shard?.map);
    this.#shards[index] = { edit: this.#edit, map };
    return map;
  }

  #split(entries: ReadonlyMap<string, V>): void {
    const maps = Array.from({ length: SHARDS }, () => new Map<string, V>());
    for (const [key, value] of entries) maps[shardOf(key)]?.set(key, value);
    this.#shards = maps.map((map) => ({ edit: this.#edit, map }));
  }
}

/** At most 16 characters are looked at: an uneven spread only makes a copy larger, never an answer wrong. */
function shardOf(key: string): number {
  const step = 1 + (key.length >> 4);
  let hash = key.length;
  for (let i = 0; i < key.length; i += step) hash = (hash * 31 + key.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 8)) & (SHARDS - 1);
}
