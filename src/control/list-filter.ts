// Filters of lists: tag, name, q and the parents of a collection; knows no HTTP.
import { ApiError } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { findByKey } from "./key.ts";

/** One `name=value` of the query. */
export type QueryEntry = readonly [name: string, value: string];

/**
 * For each parameter such as `service_id`: the collection of its value, and the ids that an object refers to. `of` is null for
 * a parameter such as `type`, whose value is compared as it is.
 */
export type ParentFilters<T> = Readonly<
  Record<
    string,
    {
      readonly of: "services" | "routes" | "stream_routes" | "listeners" | "consumers" | null;
      readonly ids: (object: T) => readonly (string | null)[];
    }
  >
>;

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

/** Separates `limit` from the filters; throws a 400 for an invalid number. */
export function limitOf(query: readonly QueryEntry[], takesLimit: boolean) {
  const asked = takesLimit ? query.filter(([name]) => name === "limit") : [];
  const [, text = "Infinity"] = asked.at(-1) ?? [];
  if (text !== "Infinity" && !/^[1-9]\d{0,6}$/.test(text))
    throw new ApiError(400, "limit: must be a number from 1");
  return { limit: Number(text), filters: query.filter((entry) => !asked.includes(entry)) };
}

/** The first matching objects; stops at the limit. */
export function firstOf<T>(all: Iterable<T>, fits: (object: T) => boolean, limit: number): T[] {
  const found: T[] = [];
  for (const object of all) {
    if (!fits(object)) continue;
    found.push(object);
    if (found.length >= limit) break;
  }
  return found;
}

/** A test of all filters; throws a 400 for an unknown one. */
export function matchesFilters<T extends Searchable>(
  query: readonly QueryEntry[],
  parents: ParentFilters<T>,
  config: GatewayConfig,
): (object: T) => boolean {
  const filters = query.map(([name, value]) => filterOf<T>(name, value, { parents, config }));
  return (object) => filters.every((fits) => fits(object));
}

function filterOf<T extends Searchable>(
  name: string,
  value: string,
  { parents, config }: { readonly parents: ParentFilters<T>; readonly config: GatewayConfig },
): (object: T) => boolean {
  const parent = Object.hasOwn(parents, name) ? parents[name] : undefined;
  if (parent !== undefined) {
    const id =
      parent.of === null ? value : findByKey<{ readonly id: string }>(config[parent.of], value)?.id;
    return (object) => id !== undefined && parent.ids(object).includes(id);
  }
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
