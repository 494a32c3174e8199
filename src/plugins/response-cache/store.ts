// Stores responses in the memory of one worker, by key, resource and tag; knows no request and no freshness rule.
import type { Purge } from "../../pdk/definition.ts";
import { CacheSlot, Sieve } from "./eviction.ts";
import type { Freshness } from "./freshness.ts";

/** A stored response. Immutable: changes replace it. */
export interface Stored {
  readonly key: string;
  /** `host/path?query`, as in purges and unsafe requests. */
  readonly resource: string;
  readonly status: number;
  /** Without headers that are set for each response. */
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** Request headers of Vary, with the values of its request. */
  readonly variesOn: readonly (readonly [name: string, value: string | null])[];
  readonly tags: readonly string[];
  readonly freshness: Freshness;
  /** Milliseconds of the monotonic clock. */
  readonly storedAt: number;
}

/** Memory of a response beside its body and headers: objects, index entries. */
const OVERHEAD_BYTES = 2048;

/** Variants of one key by Vary. */
const MAX_VARIANTS = 64;

type StoredSlot = CacheSlot<Stored> & { readonly bytes: number };

export class Store {
  readonly #maxBytes: number;
  readonly #sieve = new Sieve<Stored>();
  readonly #byKey = new Map<string, StoredSlot[]>();
  readonly #byResource = new Map<string, Set<StoredSlot>>();
  readonly #byTag = new Map<string, Set<StoredSlot>>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The accounted memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Names of the request headers in Vary of the key. */
  varyNames(key: string): readonly string[] {
    return this.#byKey.get(key)?.[0]?.item.variesOn.map(([name]) => name) ?? [];
  }

  /** The variant for a request with these headers. */
  find(key: string, fieldOf: (name: string) => string | null): Stored | null {
    const slots = this.#byKey.get(key);
    if (slots === undefined) return null;
    for (const slot of slots) {
      const { variesOn } = slot.item;
      if (variesOn.length > 0 && !variesOn.every(([name, value]) => fieldOf(name) === value))
        continue;
      slot.isVisited = true;
      return slot.item;
    }
    return null;
  }

  /** Stores or replaces a variant; false when it is too large. */
  put(stored: Stored): boolean {
    const bytes = sizeOf(stored);
    const known = this.#byKey.get(stored.key) ?? [];
    const same = known.find(({ item }) => isSameVariant(item, stored));
    if (same !== undefined) this.#drop(same);
    else if (known.length >= MAX_VARIANTS) this.#dropVariant(known);
    if (bytes > this.#maxBytes) return false;
    while (this.#bytes + bytes > this.#maxBytes) {
      const slot = this.#sieve.next();
      if (slot === null) return false;
      this.#drop(slot as StoredSlot);
    }
    const slot: StoredSlot = Object.assign(new CacheSlot(stored), { bytes });
    // A replaced entry keeps its popularity.
    slot.isVisited = same?.isVisited ?? false;
    this.#sieve.add(slot);
    this.#bytes += bytes;
    const slots = this.#byKey.get(stored.key);
    // Newest first, because most requests match it.
    if (slots === undefined) this.#byKey.set(stored.key, [slot]);
    else slots.unshift(slot);
    addTo(this.#byResource, stored.resource, slot);
    for (const tag of stored.tags) addTo(this.#byTag, tag, slot);
    return true;
  }

  /** Evicts the oldest variant without a hit, so that clients with unusual headers cannot displace popular ones. */
  #dropVariant(known: readonly StoredSlot[]): void {
    let slot = known.findLast(({ isVisited }) => !isVisited);
    if (slot === undefined) {
      for (const each of known) each.isVisited = false;
      slot = known.at(-1);
    }
    if (slot !== undefined) this.#drop(slot);
  }

  /** Replaces a response with another, possibly of another variant. */
  replace(old: Stored, next: Stored): boolean {
    if (!isSameVariant(old, next)) this.remove(old);
    return this.put(next);
  }

  /** False when it was removed already. */
  remove(stored: Stored): boolean {
    const slot = this.#byKey.get(stored.key)?.find(({ item }) => item === stored);
    if (slot !== undefined) this.#drop(slot);
    return slot !== undefined;
  }

  /** Removes all responses of the resource, for all clients. */
  invalidate(resource: string): number {
    return this.#dropAll(this.#byResource.get(resource));
  }

  purge(which: Purge): number {
    switch (which.by) {
      case "all":
        return this.#dropAll([...this.#byResource.values()].flatMap((slots) => [...slots]));
      case "tag":
        return this.#dropAll(this.#byTag.get(which.value));
      case "key":
        return this.#dropNamed(which.value, (name, value) => name === value);
      case "prefix":
        return this.#dropNamed(which.value, (name, value) => name.startsWith(value));
      default:
        return which satisfies never;
    }
  }

  #dropNamed(value: string, fits: (name: string, value: string) => boolean): number {
    const ofAnyHost = value.startsWith("/");
    let count = 0;
    for (const [resource, slots] of [...this.#byResource]) {
      const name = ofAnyHost ? pathOf(resource) : resource;
      // Without the host in the key, names have no host.
      const wanted = resource.startsWith("/") ? pathOf(value) : value;
      if (fits(name, wanted)) count += this.#dropAll(slots);
    }
    return count;
  }

  #dropAll(slots: Iterable<StoredSlot> | undefined): number {
    const all = [...(slots ?? [])];
    for (const slot of all) this.#drop(slot);
    return all.length;
  }

  #drop(slot: StoredSlot): void {
    const { key, resource, tags } = slot.item;
    this.#sieve.remove(slot);
    this.#bytes -= slot.bytes;
    const left = (this.#byKey.get(key) ?? []).filter((each) => each !== slot);
    if (left.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, left);
    removeFrom(this.#byResource, resource, slot);
    for (const tag of tags) removeFrom(this.#byTag, tag, slot);
  }
}

const pathOf = (resource: string) => resource.slice(Math.max(0, resource.indexOf("/")));

function sizeOf({ key, body, headers, tags }: Stored): number {
  let bytes = OVERHEAD_BYTES + body.byteLength + key.length * 2;
  for (const [name, value] of headers) bytes += name.length + value.length;
  for (const tag of tags) bytes += tag.length + 64;
  return bytes;
}

const isSameVariant = (one: Stored, other: Stored): boolean =>
  one.variesOn.length === other.variesOn.length &&
  one.variesOn.every(([name, value], at) => {
    const [otherName, otherValue] = other.variesOn[at] ?? [];
    return name === otherName && value === otherValue;
  });

function addTo(index: Map<string, Set<StoredSlot>>, name: string, slot: StoredSlot): void {
  const slots = index.get(name);
  if (slots === undefined) index.set(name, new Set([slot]));
  else slots.add(slot);
}

function removeFrom(index: Map<string, Set<StoredSlot>>, name: string, slot: StoredSlot): void {
  const slots = index.get(name);
  slots?.delete(slot);
  if (slots?.size === 0) index.delete(name);
}
