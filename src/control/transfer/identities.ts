// Which object of a document is which of the gateway: by id, else by what makes it unique; and references by name. No rules.
import { invalid } from "../../model/error.ts";
import { UUID_PATTERN } from "../../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  type GatewayConfig,
} from "../../model/gateway-config.ts";
import { emailKey } from "../../model/user.ts";
import type { Steps } from "../../pace.ts";
import type { ImportMode } from "../../model/export-document.ts";
import { type Document, isDocument } from "../body.ts";

/** What tells the objects of a collection apart where it is not the name. All of the fields together. */
const keyFields: Readonly<Partial<Record<CollectionName, readonly string[]>>> = {
  users: ["email"],
  consumers: ["username"],
  targets: ["service_id", "host", "port"],
  credentials: ["consumer_id", "type", "identifier", "name", "secret_hash"],
  plugins: ["label", "name", "service_id", "route_id", "consumer_id", "stream_route_id"],
};

/** One object of a document on its way in. */
export interface Item {
  readonly collection: CollectionName;
  /** `routes[3]` */
  readonly place: string;
  /** What it says about itself, references by id. */
  readonly fields: Document;
  readonly id: string;
  readonly createdAt: unknown;
  readonly updatedAt: unknown;
  /** Whether the fields are as they are stored, but for references. */
  readonly isDecoded: boolean;
}

type Raw = Omit<Item, "id" | "fields"> & { id: string | null; fields: Document };

/** What became of the objects of a document. */
export interface Identified {
  readonly items: readonly Item[];
  /** Leads from ids in the document to those of the gateway where they differ. */
  readonly renamed: ReadonlyMap<string, string>;
}

/**
 * Gives every object of a document its id and turns names in references into ids. Throws a 400 for an id that is none.
 */
export function* identify(
  document: Document,
  base: GatewayConfig,
  { mode, decoded }: { readonly mode: ImportMode; readonly decoded?: WeakSet<object> },
): Steps<Identified> {
  const raws: Raw[] = [];
  for (const name of collectionNames)
    yield* readItems({ name, list: document[name], decoded }, raws);
  const registry = new Registry(base, mode);
  // What refers to others is told apart by them, so those that do not come first.
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
  // Applications refer to what has got its id only now.
  for (const raw of raws)
    if (raw.collection === "applications") raw.fields = registry.resolve(raw.fields) as Document;
  const items = raws.map((raw): Item => ({ ...raw, id: raw.id ?? Bun.randomUUIDv7() }));
  return { items, renamed: registry.renamed };
}

const refersInKey = (name: CollectionName) =>
  keyFields[name]?.some((field) => field.endsWith("_id")) ?? false;

function* readItems(
  {
    name: collection,
    list,
    decoded,
  }: {
    readonly name: CollectionName;
    readonly list: unknown;
    readonly decoded: WeakSet<object> | undefined;
  },
  raws: Raw[],
): Steps<void> {
  if (list === undefined) return;
  if (!Array.isArray(list)) throw invalid(collection, "must be a list");
  for (const [index, value] of (list as readonly unknown[]).entries()) {
    const place = `${collection}[${index}]`;
    if (!isDocument(value)) throw invalid(place, "must be an object");
    const { id = null, created_at: createdAt, updated_at: updatedAt, ...fields } = value;
    if (id !== null && (typeof id !== "string" || !UUID_PATTERN.test(id)))
      throw invalid(`${place}.id`, "must be an id");
    const known = id?.toLowerCase() ?? null;
    const isDecoded = decoded?.has(value) === true;
    raws.push({ collection, place, fields, id: known, createdAt, updatedAt, isDecoded });
    yield;
  }
}

class Registry {
  readonly #base: GatewayConfig;
  readonly #mode: ImportMode;
  /** Ids of the gateway that an object of the document has. */
  readonly #taken = new Map<string, string>();
  /** Ids in the document of objects that have another one in the gateway. */
  readonly renamed = new Map<string, string>();
  readonly #names = new Map<CollectionName, Map<string, string>>();
  readonly #keys = new Map<CollectionName, Map<string, string>>();

  constructor(base: GatewayConfig, mode: ImportMode) {
    this.#base = base;
    this.#mode = mode;
  }

  assign(raw: Raw): void {
    const { collection, place, id } = raw;
    const known = id !== null && this.#base[collection].has(id);
    // With replace, an object that is named differently by its id is another one: the document is what there is to be.
    const isSought = !known && (id === null || this.#mode === "merge");
    const found = isSought ? this.#byKey(raw) : null;
    const chosen = found ?? id ?? Bun.randomUUIDv7();
    if (id !== null && chosen !== id) this.renamed.set(id, chosen);
    const other = this.#taken.get(chosen);
    if (other !== undefined && id !== null) throw invalid(`${place}.id`, `is that of ${other} too`);
    // Two that mean the same are two objects, and the rules say which field clashes.
    raw.id = other === undefined ? chosen : Bun.randomUUIDv7();
    this.#taken.set(raw.id, place);
    const name = nameOf(collection, raw.fields);
    if (name !== null) this.#namesOf(collection).set(name, raw.id);
  }

  /**
   * The same, or a copy where something is another: members that refer to others hold ids. An unknown name stays: the rules
   * of compiling report it with its field.
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
    // Ids of other systems, such as that of a client of single sign-on.
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

function keyOf(collection: CollectionName, object: object): string | null {
  const fields = keyFields[collection] ?? ["name"];
  const values = fields.map((name) => (object as Document)[name] ?? null);
  if (values.every((value) => value === null)) return null;
  return JSON.stringify(
    values.map((value) => (collection === "users" ? emailKey(String(value)) : value)),
  );
}

/** What references may call an object. */
function nameOf(collection: CollectionName, object: object): string | null {
  const field = { consumers: "username", plugins: "label", users: "email" }[collection as string];
  const name = (object as Document)[field ?? "name"];
  return typeof name === "string" ? name : null;
}

const collections = new Map<string, CollectionName | null>();

/** What the ids in a field are those of: `client_certificate_id` -> `certificates`. There are few names of fields. */
function collectionOf(field: string): CollectionName | null {
  if (!field.endsWith("_id") && !field.endsWith("_ids")) return null;
  let found = collections.get(field);
  if (found === undefined) {
    found = collectionNamed(field.replace(/_ids?$/, ""));
    if (collections.size < MOST_FIELDS) collections.set(field, found);
  }
  return found;
}

/** Documents may name any field. */
const MOST_FIELDS = 1000;

/** `client_certificate` -> `certificates`, `stream_route` -> `stream_routes`: the longest name that fits. */
function collectionNamed(word: string): CollectionName | null {
  const fits = collectionNames.filter((name) => {
    const singular = name.slice(0, -1);
    return word === singular || word.endsWith(`_${singular}`);
  });
  return fits.toSorted((a, b) => b.length - a.length)[0] ?? null;
}
