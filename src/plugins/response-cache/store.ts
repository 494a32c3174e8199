// Answers in the memory of one worker, found by key and by what people name them by; knows no request and no freshness rule.
import type { Purge } from "../../pdk/definition.ts";
import { Seat, Sieve } from "./eviction.ts";
import type { Freshness } from "./freshness.ts";

/** An answer as it is kept. Immutable: what changes takes its place. */
export interface Stored {
  readonly key: string;
  /** `host/path?query`: what people and unsafe requests name it by. */
  readonly resource: string;
  readonly status: number;
  /** Without what is written anew for each answer. */
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** Request fields that it depends on, with the values that it was made for. */
  readonly variesOn: readonly (readonly [name: string, value: string | null])[];
  readonly tags: readonly string[];
  readonly freshness: Freshness;
  /** Milliseconds of the monotonic clock. */
  readonly storedAt: number;
}

/** What an answer takes beside its body and fields: objects, places in the indexes. */
const OVERHEAD_BYTES = 2048;

/** Answers for one key that differ by Vary. */
const MAX_VARIANTS = 64;

type Place = Seat<Stored> & { readonly bytes: number };

export class Store {
  readonly #maxBytes: number;
  readonly #sieve = new Sieve<Stored>();
  readonly #byKey = new Map<string, Place[]>();
  readonly #byResource = new Map<string, Set<Place>>();
  readonly #byTag = new Map<string, Set<Place>>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What is counted of the memory that it takes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Names of the request fields that answers for the key depend on. */
  varyNames(key: string): readonly string[] {
    return this.#byKey.get(key)?.[0]?.item.variesOn.map(([name]) => name) ?? [];
  }

  /** The answer that fits a request with those fields. */
  find(key: string, fieldOf: (name: string) => string | null): Stored | null {
    const places = this.#byKey.get(key);
    if (places === undefined) return null;
    for (const place of places) {
      const { variesOn } = place.item;
      if (variesOn.length > 0 && !variesOn.every(([name, value]) => fieldOf(name) === value))
        continue;
      place.isWanted = true;
      return place.item;
    }
    return null;
  }

  /** Takes the place of the one for the same request; false when it is too long. */
  put(stored: Stored): boolean {
    const bytes = sizeOf(stored);
    const known = this.#byKey.get(stored.key) ?? [];
    const same = known.find(({ item }) => isSameVariant(item, stored));
    if (same !== undefined) this.#drop(same);
    else if (known.length >= MAX_VARIANTS) this.#dropVariant(known);
    if (bytes > this.#maxBytes) return false;
    while (this.#bytes + bytes > this.#maxBytes) {
      const seat = this.#sieve.next();
      if (seat === null) return false;
      this.#drop(seat as Place);
    }
    const place: Place = Object.assign(new Seat(stored), { bytes });
    // What was asked for before it was replaced is as likely to be asked for again.
    place.isWanted = same?.isWanted ?? false;
    this.#sieve.add(place);
    this.#bytes += bytes;
    const places = this.#byKey.get(stored.key);
    // The newest first: it is the one that most requests are for.
    if (places === undefined) this.#byKey.set(stored.key, [place]);
    else places.unshift(place);
    addTo(this.#byResource, stored.resource, place);
    for (const tag of stored.tags) addTo(this.#byTag, tag, place);
    return true;
  }

  /** The oldest that nobody has asked for since it came: clients that send what no other one does must not take the room of those. */
  #dropVariant(known: readonly Place[]): void {
    let place = known.findLast(({ isWanted }) => !isWanted);
    if (place === undefined) {
      for (const each of known) each.isWanted = false;
      place = known.at(-1);
    }
    if (place !== undefined) this.#drop(place);
  }

  /** Puts an answer in the place of another one, which may have been for other requests. */
  replace(old: Stored, next: Stored): boolean {
    if (!isSameVariant(old, next)) this.remove(old);
    return this.put(next);
  }

  /** False when it is not there any more. */
  remove(stored: Stored): boolean {
    const place = this.#byKey.get(stored.key)?.find(({ item }) => item === stored);
    if (place !== undefined) this.#drop(place);
    return place !== undefined;
  }

  /** All answers for this, whoever they are for. */
  invalidate(resource: string): number {
    return this.#dropAll(this.#byResource.get(resource));
  }

  purge(which: Purge): number {
    switch (which.by) {
      case "all":
        return this.#dropAll([...this.#byResource.values()].flatMap((places) => [...places]));
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
    for (const [resource, places] of [...this.#byResource]) {
      const name = ofAnyHost ? pathOf(resource) : resource;
      // Where answers do not differ by host, none is named by it.
      const wanted = resource.startsWith("/") ? pathOf(value) : value;
      if (fits(name, wanted)) count += this.#dropAll(places);
    }
    return count;
  }

  #dropAll(places: Iterable<Place> | undefined): number {
    const all = [...(places ?? [])];
    for (const place of all) this.#drop(place);
    return all.length;
  }

  #drop(place: Place): void {
    const { key, resource, tags } = place.item;
    this.#sieve.remove(place);
    this.#bytes -= place.bytes;
    const left = (this.#byKey.get(key) ?? []).filter((each) => each !== place);
    if (left.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, left);
    removeFrom(this.#byResource, resource, place);
    for (const tag of tags) removeFrom(this.#byTag, tag, place);
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

function addTo(index: Map<string, Set<Place>>, name: string, place: Place): void {
  const places = index.get(name);
  if (places === undefined) index.set(name, new Set([place]));
  else places.add(place);
}

function removeFrom(index: Map<string, Set<Place>>, name: string, place: Place): void {
  const places = index.get(name);
  places?.delete(place);
  if (places?.size === 0) index.delete(name);
}
