// Finds objects by id or unique name; knows no resource.
import { type Consumer, usernameOf } from "../model/consumer.ts";
import { invalid } from "../model/error.ts";
import { type Identity, UUID_PATTERN } from "../model/fields.ts";
import { type CollectionName, definitionOf, type GatewayConfig } from "../model/gateway-config.ts";
import { LayeredMap } from "../model/layered-map.ts";
import { idsAt } from "../model/resource.ts";
import { suggestedName } from "../model/suggestion.ts";

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

/** The fields of a request with ids where it has names; throws a 400 that names the field of a missing object. */
export function withIds<F extends object>(
  collection: CollectionName,
  fields: F,
  config: GatewayConfig,
): F {
  let resolved = fields;
  for (const field of definitionOf(collection).references) {
    const { word } = definitionOf(field.to);
    const objects: ReadonlyMap<string, Identity> = config[field.to];
    const ids = idsAt(field, fields).map(({ path, id }) => resolveKey(objects, id, { path, word }));
    if (ids.length > 0)
      resolved = replaceAt(resolved, field.steps, field.isList ? [...new Set(ids)] : ids[0]) as F;
  }
  return resolved;
}

function replaceAt(value: unknown, [step, ...rest]: readonly string[], by: unknown): unknown {
  if (step === undefined) return by;
  const members = value as Readonly<Record<string, unknown>>;
  return { ...members, [step]: replaceAt(members[step], rest, by) };
}

/** The id of an object that a request refers to; throws a 400 that names the field when it does not exist. */
export function resolveKey<T extends { readonly id: string }>(
  objects: ReadonlyMap<string, T>,
  key: string,
  at: { readonly path: string; readonly word: string },
): string {
  const object = findByKey(objects, key);
  if (object === null) {
    const near = suggestedName(key, objects, nameOf);
    throw invalid(at.path, `${at.word} "${key}" does not exist${near}`);
  }
  return object.id;
}
