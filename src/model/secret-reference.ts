// Where objects refer to secrets by name, as {"$secret": "name"}; knows no value and no encryption.
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
  type SingletonName,
} from "./gateway-config.ts";

/** Collections and singletons that have fields for secrets. */
export const secretHolders: readonly (CollectionName | SingletonName)[] = [
  "sso",
  ...collectionNames.filter((name) => definitionOf(name).holdsSecrets === true),
];

export interface SecretReference {
  /** Inside the object: `client_secret`, `headers[0].value`. */
  readonly path: string;
  /** Name of the secret. */
  readonly name: string;
}

/** A reference and the object that holds it; `id` is empty for what exists only once. */
export interface HeldReference extends SecretReference {
  readonly collection: CollectionName | SingletonName;
  readonly id: string;
}

/** All references in an object, however deep. */
export function findReferences(object: unknown, path = ""): SecretReference[] {
  if (typeof object !== "object" || object === null) return [];
  if (Array.isArray(object))
    return object.flatMap((item, index) => findReferences(item, `${path}[${index}]`));
  const name = (object as { readonly $secret?: unknown }).$secret;
  if (typeof name === "string") return [{ path, name }];
  return Object.entries(object).flatMap(([key, value]) =>
    findReferences(value, path === "" ? key : `${path}.${key}`),
  );
}

/** All references of a configuration. */
export function referencesOf(config: GatewayConfig): HeldReference[] {
  return secretHolders.flatMap((collection) =>
    objectsOf(config, collection).flatMap(([id, object]) =>
      findReferences(object).map((reference) => ({ collection, id, ...reference })),
    ),
  );
}

function objectsOf(
  config: GatewayConfig,
  name: CollectionName | SingletonName,
): (readonly [id: string, object: unknown])[] {
  const isCollection = (collectionNames as readonly string[]).includes(name);
  return isCollection ? [...config[name as CollectionName]] : [["", config[name]]];
}
