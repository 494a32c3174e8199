// Maps objects of a configuration file to those of the gateway, by id or unique fields, and resolves references by name. No rules.
import { type ApiError, invalid } from "../../model/error.ts";
import { UUID_PATTERN } from "../../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
} from "../../model/gateway-config.ts";
import { emailKey } from "../../model/user.ts";
import type { Steps } from "../../pace.ts";
import type { ImportMode } from "../../model/export-document.ts";
import { type Document, isDocument } from "../../control/body.ts";
import { storedNameOf } from "../../model/host-name.ts";
import { withPlainTargets } from "../../control/services.ts";

/** One object of an imported file. */
export interface Item {
  readonly collection: CollectionName;
  /** `routes[3]` */
  readonly path: string;
  /** Its fields, references by id. */
  readonly fields: Document;
  readonly id: string;
  readonly createdAt: unknown;
  readonly updatedAt: unknown;
  /** Whether the fields are as they are stored, except references. */
  readonly isDecoded: boolean;
  /** Whether it is a service with a list of all its targets. */
  readonly hasTargets: boolean;
}

type Raw = Omit<Item, "id" | "fields"> & { id: string | null; fields: Document };

/** The objects of a file with their ids. */
export interface Identified {
  readonly items: readonly Item[];
  /** Maps ids in the file to those of the gateway where they differ. */
  readonly renamed: ReadonlyMap<string, string>;
}

/**
 * Assigns every object of a file its id and resolves names in references to ids. Throws a 400 for an invalid id.
 */
export interface IdentifyOptions {
  readonly mode: ImportMode;
  readonly decoded?: WeakSet<object>;
  /** Whether an object with an id is never another one with the same name. Default: with `replace`. */
  readonly keepsIds?: boolean;
  /** Gets each error of an object, which is left out. Default: the first one is thrown. */
  readonly onError?: (error: ApiError, id: null) => void;
}

export function* identify(
  document: Document,
  base: GatewayConfig,
  options: IdentifyOptions,
): Steps<Identified> {
  const { decoded, onError = raise } = options;
  const raws: Raw[] = [];
  for (const name of collectionNames)
    yield* readItems({ name, list: document[name], decoded, onError }, raws);
  const registry = new Registry(base, options.keepsIds ?? options.mode === "replace");
  // Objects whose unique fields are references come second.
  for (const raw of raws)
    if (!refersInKey(raw.collection)) {
      registry.assign(raw);
      yield;
    }
  for (const raw of raws) {
    raw.fields = registry.resolve(raw.fields) as Document;
    yield;
  }
  for (const raw of raws)
    if (refersInKey(raw.collection)) {
      registry.assign(raw);
      yield;
    }
  // Applications refer to objects that have their ids only now.
  for (const raw of raws)
    if (raw.collection === "applications") raw.fields = registry.resolve(raw.fields) as Document;
  const items = raws.map((raw): Item => ({ ...raw, id: raw.id ?? Bun.randomUUIDv7() }));
  return { items, renamed: registry.renamed };
}

const refersInKey = (name: CollectionName) =>
  definitionOf(name).identifiedBy.some((field) => field.endsWith("_id"));

function* readItems(
  {
    name: collection,
    list,
    decoded,
    onError,
    path: at = collection,
    owner = {},
  }: {
    readonly name: CollectionName;
    readonly list: unknown;
    readonly decoded: WeakSet<object> | undefined;
    readonly onError: NonNullable<IdentifyOptions["onError"]>;
    /** Default: that of the collection. */
    readonly path?: string;
    /** Fields that name the owner of the list. */
    readonly owner?: Document;
  },
  raws: Raw[],
): Steps<void> {
  if (list === undefined) return;
  if (!Array.isArray(list)) return onError(invalid(at, "must be a list"), null);
  for (const [index, value] of (list as readonly unknown[]).entries()) {
    const path = `${at}[${index}]`;
    if (!isDocument(value)) {
      onError(invalid(path, "must be an object"), null);
      continue;
    }
    const {
      id = null,
      created_at: createdAt,
      updated_at: updatedAt,
      managed_by: _,
      ...own
    } = value;
    if (id !== null && (typeof id !== "string" || !UUID_PATTERN.test(id))) {
      onError(invalid(`${path}.id`, "must be an id"), null);
      continue;
    }
    const known = id?.toLowerCase() ?? null;
    const isDecoded = decoded?.has(value) === true;
    const { targets, ...others } = own;
    const hasTargets = collection === "services" && targets !== undefined;
    const fields = { ...(hasTargets ? others : own), ...owner };
    raws.push({ collection, path, fields, id: known, createdAt, updatedAt, isDecoded, hasTargets });
    yield;
    if (!hasTargets) continue;
    // As in a request: the targets of a service in its document.
    const inside = { path: `${path}.targets`, owner: { service_id: known ?? others["name"] } };
    const { targets: plain } = withPlainTargets({ targets }) as { readonly targets: unknown };
    yield* readItems({ name: "targets", list: plain, decoded, onError, ...inside }, raws);
  }
}

function raise(error: ApiError): never {
  throw error;
}

class Registry {
  readonly #base: GatewayConfig;
  readonly #keepsIds: boolean;
  /** Assigned ids, with the path of their object. */
  readonly #taken = new Map<string, string>();
  /** Ids in the file of objects with another id in the gateway. */
  readonly renamed = new Map<string, string>();
  readonly #names = new Map<CollectionName, Map<string, string>>();
  readonly #keys = new Map<CollectionName, Map<string, string>>();

  constructor(base: GatewayConfig, keepsIds: boolean) {
    this.#base = base;
    this.#keepsIds = keepsIds;
  }

  assign(raw: Raw): void {
    const { collection, path, id } = raw;
    const known = id !== null && this.#base[collection].has(id);
    // With replace, an object with another id is another object: the file is the desired state.
    const isSought = !known && (id === null || !this.#keepsIds);
    const found = isSought ? this.#byKey(raw) : null;
    const chosen = found ?? id ?? Bun.randomUUIDv7();
    if (id !== null && chosen !== id) this.renamed.set(id, chosen);
    const other = this.#taken.get(chosen);
    if (other !== undefined && id !== null) throw invalid(`${path}.id`, `is that of ${other} too`);
    // Two objects with the same unique fields stay two, and the rules report the field that clashes.
    raw.id = other === undefined ? chosen : Bun.randomUUIDv7();
    this.#taken.set(raw.id, path);
    const name = nameOf(collection, raw.fields);
    if (name !== null) this.#namesOf(collection).set(name, raw.id);
  }

  /**
   * Resolves names in references to ids, in a copy where one changes. An unknown name stays: the rules report it with its field.
   */
  resolve(value: unknown, field = ""): unknown {
    if (typeof value === "string") return this.#idOf(value, field);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      const items = value.map((item) => this.resolve(item, field));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    const members = value as Document;
    let changed: Record<string, unknown> | null = null;
    for (const name of Object.keys(members)) {
      const inner = this.resolve(members[name], name);
      if (inner === members[name]) continue;
      changed ??= { ...members };
      changed[name] = inner;
    }
    return changed ?? value;
  }

  #idOf(text: string, field: string): string {
    const collection = collectionOf(field);
    // Ids of other systems, such as the client id of single sign-on.
    if (collection === null) return text;
    if (!UUID_PATTERN.test(text)) return this.#namesOf(collection).get(text) ?? text;
    const id = text.toLowerCase();
    return this.renamed.get(id) ?? id;
  }

  #byKey(raw: Raw): string | null {
    const { collection, fields } = raw;
    const key = keyOf(collection, fields);
    if (key === null) return null;
    let keys = this.#keys.get(collection);
    if (keys === undefined) {
      keys = new Map();
      for (const object of this.#base[collection].values()) {
        const own = keyOf(collection, object);
        if (own !== null) keys.set(own, object.id);
      }
      this.#keys.set(collection, keys);
    }
    return keys.get(key) ?? null;
  }

  #namesOf(collection: CollectionName): Map<string, string> {
    let names = this.#names.get(collection);
    if (names === undefined) {
      names = new Map();
      for (const object of this.#base[collection].values()) {
        const name = nameOf(collection, object);
        if (name !== null) names.set(name, object.id);
      }
      this.#names.set(collection, names);
    }
    return names;
  }
}

/** What identifies an object in its collection without its id; null: nothing. */
export function keyOf(collection: CollectionName, object: object): string | null {
  const values = definitionOf(collection).identifiedBy.map((name) => {
    const value = (object as Document)[name] ?? null;
    return name === "host" && typeof value === "string" ? storedNameOf(value) : value;
  });
  if (values.every((value) => value === null)) return null;
  return JSON.stringify(
    values.map((value) => (collection === "users" ? emailKey(String(value)) : value)),
  );
}

/** The name of an object in references. */
export function nameOf(collection: CollectionName, object: object): string | null {
  const name = (object as Document)[definitionOf(collection).nameField ?? "name"];
  return typeof name === "string" ? name : null;
}

const collections = new Map<string, CollectionName | null>();

/** The collection that a field refers to: `client_certificate_id` -> `certificates`. There are few field names. */
export function collectionOf(field: string): CollectionName | null {
  if (!field.endsWith("_id") && !field.endsWith("_ids")) return null;
  let found = collections.get(field);
  if (found === undefined) {
    found = collectionNamed(field.replace(/_ids?$/, ""));
    if (collections.size < MAX_FIELDS) collections.set(field, found);
  }
  return found;
}

/** Bound of the cache: a file may have any field names. */
const MAX_FIELDS = 1000;

/** `client_certificate` -> `certificates`, `stream_route` -> `stream_routes`: the longest match. */
function collectionNamed(word: string): CollectionName | null {
  const fits = collectionNames.filter((name) => {
    const singular = name.slice(0, -1);
    return word === singular || word.endsWith(`_${singular}`);
  });
  return fits.toSorted((a, b) => b.length - a.length)[0] ?? null;
}
