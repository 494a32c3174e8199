// The draft of the next configuration: copy-on-write with a record of its changes; knows no rule.
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  type GatewayConfig,
  largeFactsOf,
  mapCollections,
  type ResourceChange,
  type ResourceOf,
  type SingletonName,
  singletonNames,
  type SingletonOf,
} from "../model/gateway-config.ts";
import { byAge, LayeredMap, MANY } from "../model/layered-map.ts";
import type { IndexOf } from "../model/rows.ts";
import type { Stamp } from "./stamp.ts";

interface Writable<T> {
  readonly size: number;
  set(id: string, object: T): unknown;
  delete(id: string): boolean;
}

interface Changes<T> {
  readonly upserts: Map<string, T>;
  readonly removals: Set<string>;
}

type Mutable = { -readonly [K in keyof GatewayConfig]: GatewayConfig[K] };

/** One change in progress. The base configuration stays unchanged. */
export class Draft {
  readonly base: GatewayConfig;
  /**
   * Whether sending the stored secret again counts as no change: only for admins, because it would confirm a guess.
   */
  readonly isByAdmin: boolean;
  /** Summary for the history: `create service "web"`. */
  summary = "change";
  readonly #warnings: string[] = [];
  readonly #config: Mutable;
  readonly #changes = mapCollections(() => ({
    upserts: new Map(),
    removals: new Set(),
  })) as { readonly [K in CollectionName]: Changes<ResourceOf[K]> };
  readonly #paths = new Map<string, string>();
  readonly #sent = new Set<string>();
  readonly #checks: (() => void)[] = [];
  readonly #stamp: () => string;

  /** `stamp` returns unique times, so that the order of creation is unambiguous. */
  constructor(base: GatewayConfig, stamp: () => string, isByAdmin = true) {
    this.base = base;
    this.isByAdmin = isByAdmin;
    this.#config = { ...base };
    this.#stamp = stamp;
  }

  /** A change that was made elsewhere, on an equal base. `stamp` has not observed it yet. */
  static of(change: ConfigChange, base: GatewayConfig, stamp: Stamp): Draft {
    const draft = new Draft(base, stamp);
    const latest = stamp.latest();
    for (const name of collectionNames) {
      const { upserts, removals } = change[name];
      for (const id of removals) draft.remove(name, id);
      for (const object of upserts) draft.put(name, object);
      // A new object is later than all others, unless it is a restored one.
      const isRestored = ({ id, created_at }: Identity) =>
        !base[name].has(id) && Date.parse(created_at) <= latest;
      if ((upserts as readonly Identity[]).some(isRestored)) draft.sortByAge(name);
    }
    for (const name of singletonNames) {
      const value = change[name];
      if (value !== null) draft.putSingleton(name, value);
    }
    return draft;
  }

  /** The resulting configuration. */
  get config(): GatewayConfig {
    return this.#config;
  }

  /** A new time, RFC 3339, later than every other one. */
  stamp(): string {
    return this.#stamp();
  }

  put<K extends CollectionName>(collection: K, object: ResourceOf[K]): void {
    const objects = this.#writable(collection);
    objects.set(object.id, object);
    if (objects instanceof Map && objects.size >= MANY) {
      const all = objects as ReadonlyMap<string, Identity>;
      this.#replace(collection, mapOf(collection, [...all.values()]));
    }
    const { upserts, removals } = this.#changes[collection];
    upserts.set(object.id, object);
    removals.delete(object.id);
  }

  remove(collection: CollectionName, id: string): void {
    if (!this.#writable(collection).delete(id)) return;
    const { upserts, removals } = this.#changes[collection];
    upserts.delete(id);
    if (this.base[collection].has(id)) removals.add(id);
  }

  /** Sorts restored objects into the order of creation. */
  sortByAge(collection: CollectionName): void {
    const changed: ReadonlyMap<string, Identity> = this.#config[collection];
    if (changed === this.base[collection]) return;
    if (changed instanceof LayeredMap && largeFactsOf(collection) !== null) {
      this.#replace(collection, (changed as LayeredMap<Identity>).settled());
      return;
    }
    const objects = [...changed.values()];
    const isSorted = objects.every((object, index) => {
      const before = objects[index - 1];
      return before === undefined || byAge(before, object) < 0;
    });
    if (!isSorted) this.#replace(collection, mapOf(collection, objects.sort(byAge)));
    else if (changed instanceof LayeredMap)
      this.#replace(collection, (changed as LayeredMap<Identity>).settled());
  }

  /** Replaces a singleton. */
  putSingleton<K extends SingletonName>(name: K, value: SingletonOf[K]): void {
    (this.#config as Record<SingletonName, unknown>)[name] = value;
  }

  /** Records the path of an object in the request document, for error messages. */
  setPath(id: string, path: string): void {
    this.#paths.set(id, path);
  }

  /** Null for an object that the client did not send. */
  pathOf(id: string): string | null {
    return this.#paths.get(id) ?? null;
  }

  /** Records that the client sent the plain value of this encrypted text and so knows it, whatever its destination. */
  markSent(sealed: string): void {
    this.#sent.add(sealed);
  }

  wasSent(sealed: string): boolean {
    return this.#sent.has(sealed);
  }

  /** Defers `check` until the client is known to be allowed to make this change, because its errors may reveal secrets. */
  checkLater(check: () => void): void {
    this.#checks.push(check);
  }

  /** Runs the checks of `checkLater`; throws the first error. */
  runChecks(): void {
    for (const check of this.#checks) check();
  }

  /** A warning about the change, one sentence: the response shows it, also of a dry run. */
  warn(sentence: string): void {
    this.#warnings.push(sentence);
  }

  get warnings(): readonly string[] {
    return this.#warnings;
  }

  isUnchanged(): boolean {
    return Object.entries(this.base).every(
      ([key, value]) => this.#config[key as keyof GatewayConfig] === value,
    );
  }

  /** The rows to write. */
  change(): ConfigChange {
    const collections = mapCollections((name): ResourceChange<unknown> => {
      const { upserts, removals } = this.#changes[name];
      return { upserts: [...upserts.values()], removals: [...removals] };
    });
    return {
      ...(collections as Pick<ConfigChange, CollectionName>),
      settings: this.#config.settings === this.base.settings ? null : this.#config.settings,
      sso: this.#config.sso === this.base.sso ? null : this.#config.sso,
    };
  }

  #writable<K extends CollectionName>(collection: K): Writable<ResourceOf[K]> {
    const base = this.base[collection] as ReadonlyMap<string, ResourceOf[K]>;
    if (this.#config[collection] === this.base[collection])
      this.#replace(collection, copyOf(collection, base));
    return this.#config[collection] as unknown as Writable<ResourceOf[K]>;
  }

  #replace(collection: CollectionName, objects: ReadonlyMap<string, Identity>): void {
    (this.#config as Record<CollectionName, ReadonlyMap<string, Identity>>)[collection] = objects;
  }
}

/** A copy that can be changed independently. */
function copyOf<T extends Identity>(
  collection: CollectionName,
  base: ReadonlyMap<string, T>,
): ReadonlyMap<string, T> {
  if (base instanceof LayeredMap) return (base as LayeredMap<T>).draft();
  return mapOf(collection, [...base.values()]);
}

/** Objects in the order of their age; a layered map, which is cheap to copy, when they are many. */
function mapOf<T extends Identity>(
  collection: CollectionName,
  objects: readonly T[],
): ReadonlyMap<string, T> {
  if (objects.length < MANY) return new Map(objects.map((object) => [object.id, object]));
  const indexes: unknown = largeFactsOf(collection)?.indexes ?? null;
  return LayeredMap.of(objects, indexes as readonly IndexOf<T>[] | null);
}
