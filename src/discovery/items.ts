// The objects of sites with their ids, which stay the same from look to look; writes nothing.
import { createHash } from "node:crypto";
import { type Document, isDocument } from "../control/body.ts";
import type { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
} from "../model/gateway-config.ts";
import { referenceOf } from "../model/application.ts";
import { collectionOf, keyOf, nameOf } from "../import/transfer/identities.ts";
import type { Steps } from "../pace.ts";
import type { Site } from "./site.ts";

export interface Item {
  readonly collection: CollectionName;
  readonly id: string;
  readonly fields: Document;
  /** Index of its site. */
  readonly site: number;
  /** Among all of its collection: `applications[3]`. */
  readonly place: string;
  /** Among those of its site. */
  readonly placeInSite: string;
}

interface ItemContext {
  /** The mark of the source's objects. */
  readonly owner: string;
  readonly config: GatewayConfig;
}

/** The objects of all sites that are not refused. */
export function* itemsOf(
  sites: readonly Site[],
  refused: ReadonlySet<number>,
  context: ItemContext,
): Steps<readonly Item[]> {
  const items: Item[] = [];
  const seen = new Set<string>();
  const counts = new Map<CollectionName, number>();
  for (const [site, found] of sites.entries()) {
    if (refused.has(site)) continue;
    for (const collection of collectionNames)
      for (const [index, document] of (found.document[collection] ?? []).entries()) {
        const { id: _, ...fields } = document;
        const key = keyIn(found, { collection, index, document });
        const id = typeof key === "string" ? key : idOf(context.owner, collection, key.key);
        // Two sites may want a certificate for the same name.
        if (collection === "certificates" && seen.has(id)) continue;
        seen.add(id);
        const count = counts.get(collection) ?? 0;
        counts.set(collection, count + 1);
        items.push({
          collection,
          id,
          fields,
          site,
          place: `${collection}[${count}]`,
          placeInSite: `${collection}[${index}]`,
        });
        yield;
      }
  }
  const isOwned = items.some(({ site }) => sites[site]?.owner !== undefined);
  return isOwned ? yield* withKnownIds(items, context) : items;
}

const refersInKey = (name: CollectionName): boolean =>
  definitionOf(name).identifiedBy.some((field) => field.endsWith("_id"));

interface Place {
  readonly collection: CollectionName;
  /** In its site. */
  readonly index: number;
  readonly document: Document;
}

/** What the id of an object derives from; a string: the id. */
function keyIn(
  { from, owner }: Site,
  { collection, index, document }: Place,
): string | { readonly key: string } {
  if (owner !== undefined && collection !== "certificates") {
    const { id, host, port, name } = document;
    // Converters name the objects of their own documents.
    if (typeof id === "string") return id;
    const places: Partial<Record<CollectionName, unknown>> = {
      targets: `${String(host)} ${String(port)}`,
      plugins: name,
    };
    return { key: JSON.stringify([owner.root, places[collection] ?? index]) };
  }
  const names = definitionOf(collection).identifiedBy.map((field) => document[field] ?? null);
  const isNamed = names.some((name) => name !== null);
  return { key: isNamed ? JSON.stringify(names) : `${from} ${index}` };
}

/** The same for the same key, whenever it is found: RFC 9562 section 5.8. */
function idOf(owner: string, collection: CollectionName, key: string): string {
  const hash = createHash("sha256").update(`${owner} ${collection} ${key}`).digest("hex");
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/**
 * An object of this source that has the name already stays the same object: after an upgrade, which derives ids in another way,
 * and where a person's object refers to one whose container was gone.
 */
function* withKnownIds(
  items: readonly Item[],
  { owner, config }: ItemContext,
): Steps<readonly Item[]> {
  const ids = new Set(items.map(({ id }) => id));
  for (const { id } of items)
    for (const part of config.applications.get(id)?.parts ?? [])
      ids.add(referenceOf(part)?.id ?? "");
  const known = new Map<string, string>();
  /** Of the items, by `services web`. */
  const named = new Map<string, string>();
  const resolved = (fields: Document): Document =>
    Object.fromEntries(
      Object.entries(fields).map(([field, value]) => {
        const collection = collectionOf(field);
        if (collection === null || typeof value !== "string") return [field, value];
        return [field, known.get(value) ?? named.get(`${collection} ${value}`) ?? value];
      }),
    );
  // What refers to others in its key comes second.
  const lists = [...Map.groupBy(items, ({ collection }) => collection)].toSorted(
    ([a], [b]) => Number(refersInKey(a)) - Number(refersInKey(b)),
  );
  for (const [collection, own] of lists) {
    const isKnown = own.every(({ id }) => config[collection].has(id));
    const stored = new Map<string | null, string>();
    if (!isKnown)
      for (const object of config[collection].values() as Iterable<Identity>)
        if (object.managed_by === owner && !ids.has(object.id))
          stored.set(keyOf(collection, object), object.id);
    for (const { id, fields } of own) {
      const key = keyOf(collection, resolved(fields));
      const old = key === null || config[collection].has(id) ? undefined : stored.get(key);
      if (old !== undefined) known.set(id, old);
      const name = nameOf(collection, fields);
      if (name !== null) named.set(`${collection} ${name}`, old ?? id);
      yield;
    }
  }
  if (known.size === 0) return items;
  const renamed = (value: unknown): unknown => {
    if (typeof value === "string") return known.get(value) ?? value;
    if (Array.isArray(value)) return value.map(renamed);
    if (!isDocument(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, renamed(one)]));
  };
  return items.map((item) => ({
    ...item,
    id: known.get(item.id) ?? item.id,
    fields: renamed(item.fields) as Document,
  }));
}

/** The object that a message begins with. */
export const OBJECT = /^\w+\[\d+\]/;

/** The object that an error is about; null: none. */
export function itemOf({ message }: ApiError, items: readonly Item[]): Item | null {
  const [place] = OBJECT.exec(message) ?? [];
  return items.find((item) => item.place === place) ?? null;
}

export const labelIn = ({ collection, fields }: Item): string =>
  `${definitionOf(collection).word} ${JSON.stringify(fields[definitionOf(collection).nameField ?? "name"] ?? null)}`;

const MAX_NAMES = 5;

/** Of a change, for people. */
export function summaryOf(written: readonly Item[], removed: number): string {
  const names = [...new Set(written.map(({ fields }) => String(fields["name"] ?? "")))].filter(
    (name) => name !== "",
  );
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
  const wrote = names.length === 0 ? [] : [`update ${names.slice(0, MAX_NAMES).join(", ")}${more}`];
  return [...wrote, ...(removed === 0 ? [] : [`delete ${removed} objects`])].join(", ") || "update";
}
