// Two indexes of entries: by key, which lookups read without a lock, and by resource; knows no contents.
import { fields, type Views } from "./memory.ts";

/** Salted, because clients choose keys. */
export type TextHash = (text: string, salt: bigint) => bigint;

/** Methods that change something need the lock. */
export class Index {
  /** Of the last text that `hash` was called with. */
  low = 0;
  high = 0;
  readonly #views: Views;
  readonly #hash: TextHash;
  readonly #salt: bigint;
  readonly #long = new BigUint64Array(1);
  readonly #halves = new Int32Array(this.#long.buffer);
  readonly #mask: number;

  constructor(views: Views, salt: bigint, hash: TextHash) {
    this.#views = views;
    this.#hash = hash;
    this.#salt = salt;
    this.#mask = views.geometry.buckets - 1;
  }

  /** Sets `low` and `high`. */
  hash(text: string): void {
    this.#long[0] = this.#hash(text, this.#salt);
    this.low = this.#halves[0] ?? 0;
    this.high = this.#halves[1] ?? 0;
  }

  /** The low half of a text's hash. */
  hashOf(text: string): number {
    this.hash(text);
    return this.low;
  }

  bucketOf(hash: number): number {
    return hash & this.#mask;
  }

  /** The newest entry whose key may have this hash; the next ones follow by `keyNext`. */
  firstOfKey(hashLow: number): number {
    return Atomics.load(this.#views.keys, this.bucketOf(hashLow));
  }

  firstOfResource(hash: number): number {
    return this.#views.resources[this.bucketOf(hash)] ?? 0;
  }

  /** By the hashes in the descriptor. */
  link(entry: number): void {
    const { keys, resources } = this.#views;
    const byResource = this.bucketOf(this.#views.get(entry, fields.resourceHash));
    const next = resources[byResource] ?? 0;
    this.#views.set(entry, fields.resourceNext, next);
    this.#views.set(entry, fields.resourcePrevious, 0);
    if (next !== 0) this.#views.set(next, fields.resourcePrevious, entry);
    resources[byResource] = entry;
    const byKey = this.bucketOf(this.#views.get(entry, fields.hashLow));
    this.#views.set(entry, fields.keyNext, keys[byKey] ?? 0);
    Atomics.store(keys, byKey, entry);
  }

  unlink(entry: number): void {
    const { resources } = this.#views;
    this.#unlinkKey(entry);
    const next = this.#views.get(entry, fields.resourceNext);
    const previous = this.#views.get(entry, fields.resourcePrevious);
    if (next !== 0) this.#views.set(next, fields.resourcePrevious, previous);
    if (previous !== 0) this.#views.set(previous, fields.resourceNext, next);
    else resources[this.bucketOf(this.#views.get(entry, fields.resourceHash))] = next;
  }

  #unlinkKey(entry: number): void {
    const { keys } = this.#views;
    const bucket = this.bucketOf(this.#views.get(entry, fields.hashLow));
    const next = this.#views.get(entry, fields.keyNext);
    let at = keys[bucket] ?? 0;
    if (at === entry) {
      Atomics.store(keys, bucket, next);
      return;
    }
    while (at !== 0) {
      const following = this.#views.get(at, fields.keyNext);
      if (following === entry) {
        this.#views.set(at, fields.keyNext, next);
        return;
      }
      at = following;
    }
  }
}
