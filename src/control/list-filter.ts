// Filters of lists: tag, name, q and the parents of a collection; knows no HTTP.
import { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  definitionOf,
  type GatewayConfig,
  largeFactsOf,
  type ResourceOf,
} from "../model/gateway-config.ts";
import { findBy } from "../model/layered-map.ts";
import type { IndexOf } from "../model/rows.ts";
import { filterName, idsAt } from "../model/resource.ts";
import { findByKey } from "./key.ts";

/** One `name=value` of the query. */
export type QueryEntry = readonly [name: string, value: string];

/** The searchable fields of an object. */
interface Searchable {
  readonly id: string;
  readonly name?: string | null;
  readonly username?: string;
  readonly custom_id?: string | null;
  readonly label?: string | null;
  readonly identifier?: string | null;
  readonly email?: string | null;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly host?: string;
  readonly hosts?: readonly string[];
  readonly domains?: readonly string[];
}

/** The limit, and the other filters; throws a 400 for an invalid limit. */
export function limitOf(query: readonly QueryEntry[], hasLimit: boolean) {
  const asked = hasLimit ? query.filter(([name]) => name === "limit") : [];
  const [, text = "Infinity"] = asked.at(-1) ?? [];
  if (text !== "Infinity" && !/^[1-9]\d{0,6}$/.test(text))
    throw new ApiError(400, "limit: must be a number from 1");
  return { limit: Number(text), filters: query.filter((entry) => !asked.includes(entry)) };
}

/** The first matches; stops at the limit. */
export function firstOf<T>(all: Iterable<T>, fits: (object: T) => boolean, limit: number): T[] {
  const found: T[] = [];
  for (const object of all) {
    if (!fits(object)) continue;
    found.push(object);
    if (found.length >= limit) break;
  }
  return found;
}

/** Whether an object matches all filters; throws a 400 for an unknown one. */
export function matchesFilters<T extends Searchable & Identity>(
  query: readonly QueryEntry[],
  collection: CollectionName,
  config: GatewayConfig,
): (object: T) => boolean {
  const filters = query.map(([name, value]) => filterOf<T>([name, value], collection, config));
  return (object) => filters.every((fits) => fits(object));
}

/** The objects of the owner that a filter names, from an index; null: there is no such filter or index. */
export function ofOwner<K extends CollectionName>(
  query: readonly QueryEntry[],
  collection: K,
  config: GatewayConfig,
): Iterable<ResourceOf[K]> | null {
  const index = largeFactsOf(collection)?.ownerIndex;
  const owner = definitionOf(collection).references.find(({ isOwner }) => isOwner);
  const asked = query.find(([name]) => name === owner?.path);
  if (index === undefined || owner === undefined || asked === undefined) return null;
  const id = idOf(owner.to, asked[1], config);
  const objects = config[collection] as ReadonlyMap<string, ResourceOf[K]>;
  return id === undefined ? [] : findBy(objects, index as IndexOf<ResourceOf[K]>, { value: id });
}

function idOf(collection: CollectionName, key: string, config: GatewayConfig): string | undefined {
  const objects: ReadonlyMap<string, Identity> = config[collection];
  return findByKey(objects, key)?.id;
}

function filterOf<T extends Searchable & Identity>(
  [name, value]: QueryEntry,
  collection: CollectionName,
  config: GatewayConfig,
): (object: T) => boolean {
  const { references, filters = {} } = definitionOf(collection);
  const parent = references.find((field) => field.isFilter && filterName(field) === name);
  if (parent !== undefined) {
    const wanted = idOf(parent.to, value, config);
    return (object) => idsAt(parent, object).some(({ id }) => id === wanted);
  }
  const own = Object.hasOwn(filters, name) ? filters[name] : undefined;
  if (own !== undefined) return (object) => own.of(object) === value;
  switch (name) {
    case "tag":
      return (object) => object.tags?.includes(value) ?? false;
    case "name":
      return ({ name: own, username, label }) => [own, username, label].includes(value);
    case "q":
      return contains(value.toLowerCase());
    default:
      throw new ApiError(400, `unknown query parameter "${name}"`);
  }
}

function contains(part: string): (object: Searchable) => boolean {
  return ({ hosts = [], domains = [], ...object }) => {
    const { name, username, custom_id, label, identifier, email, description, host } = object;
    const own = [name, username, custom_id, label, identifier, email, description, host];
    return [...own, ...hosts, ...domains].some((text) => text?.toLowerCase().includes(part));
  };
}
