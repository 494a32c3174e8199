// Finds objects by id or unique name; knows no resource.
import type { Consumer } from "../model/consumer.ts";
import { invalid } from "../model/error.ts";
import { type Identity, UUID_PATTERN } from "../model/fields.ts";
import { usernameOf } from "../model/large-collections.ts";
import { LayeredMap } from "../model/layered-map.ts";

/** The unique name of an object: consumers and plugins have other fields than `name`. */
function nameOf(object: object): unknown {
  if ("username" in object) return object.username;
  return "label" in object ? object.label : (object as { readonly name?: unknown }).name;
}

/** A single function, because its identity is the key of the index. */
function nameIndex(object: object): string | null {
  const name = nameOf(object);
  return typeof name === "string" ? name : null;
}

/** The object with this id or unique name, or null. */
export function findByKey<T extends { readonly id: string }>(
  objects: ReadonlyMap<string, T>,
  key: string,
): T | null {
  if (UUID_PATTERN.test(key)) return objects.get(key.toLowerCase()) ?? null;
  if (objects instanceof LayeredMap) {
    const many = objects as unknown as LayeredMap<Consumer & Identity>;
    // Consumers are packed, and only their own index finds them.
    const found = many.find(nameIndex, key) ?? many.find(usernameOf, key);
    if (found !== undefined) return (found[0] as unknown as T | undefined) ?? null;
  }
  for (const object of objects.values()) if (nameOf(object) === key) return object;
  return null;
}

/** The id of an object that a request refers to; throws a 400 that names the field when it does not exist. */
export function resolveKey<T extends { readonly id: string }>(
  objects: ReadonlyMap<string, T>,
  key: string,
  at: { readonly path: string; readonly word: string },
): string {
  const object = findByKey(objects, key);
  if (object === null) throw invalid(at.path, `${at.word} "${key}" does not exist`);
  return object.id;
}
