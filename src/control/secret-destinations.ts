// A new destination of a secret requires an admin, or the secret's value in the same request. Knows no HTTP.
import { type TObject, type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type SecretUse, secretUses } from "../model/destination.ts";
import { ApiError } from "../model/error.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
  type SingletonName,
} from "../model/gateway-config.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { recordSchemas } from "../model/records.ts";
import type { Draft } from "./draft.ts";
import { type Actor, roleOf } from "./principal.ts";
import { describeProblem } from "./reference.ts";

/** Collections whose objects send secrets. */
export const sendingCollections: readonly CollectionName[] = collectionNames.filter(
  (name) => definitionOf(name).sendsSecrets === true,
);

/** Singletons that send secrets. */
export const sendingSingletons = ["sso"] as const satisfies readonly SingletonName[];

/** What configures the objects that send secrets. */
export interface ConfigCatalogue {
  readonly plugins: PluginCatalogue;
  /** The schema of the configuration of each type, by collection. */
  readonly configs: { readonly [K in CollectionName]?: (type: string) => TObject | undefined };
}

/**
 * Throws a 403 that names the field of the secret and those of its destination when a role below admin gives a secret a new
 * destination, or a less protected path to it, without the secret's value in the request.
 */
export function requireAdminForDestinations(
  draft: Draft,
  by: Actor,
  catalogue: ConfigCatalogue,
): void {
  if (roleOf(by) === "admin") return;
  const { base, config } = draft;
  for (const collection of sendingCollections) {
    if (base[collection] === config[collection]) continue;
    for (const { id } of draft.change()[collection].upserts) {
      const usesIn = (state: GatewayConfig) => usesOf(state, { collection, id }, catalogue);
      const refused = firstNew(usesIn(base), usesIn(config), draft);
      if (refused !== null) throw refusal(refused, { collection, id }, draft);
    }
  }
  for (const name of sendingSingletons) {
    const refused = firstNew(
      secretUses(recordSchemas[name], base[name]),
      secretUses(recordSchemas[name], config[name]),
      draft,
    );
    if (refused !== null) throw refusal(refused, { collection: name, id: "" }, draft);
  }
}

/** The schema of a stored object, with the schema of its configuration. */
export const withConfig = (record: TObject, config: TSchema): TObject =>
  t.Object({ ...record.properties, config });

interface ObjectRef<C = CollectionName | SingletonName> {
  readonly collection: C;
  readonly id: string;
}

function usesOf(
  state: GatewayConfig,
  { collection, id }: ObjectRef<CollectionName>,
  { plugins, configs }: ConfigCatalogue,
): SecretUse[] {
  const { record, configKind } = definitionOf(collection);
  const object = state[collection].get(id) as Readonly<Record<string, unknown>> | undefined;
  if (object === undefined || configKind === undefined) return secretUses(record, object);
  const kind = String(object[configKind]);
  const schema = collection === "plugins" ? plugins.get(kind)?.config : configs[collection]?.(kind);
  if (schema === undefined) return [];
  // A new field of this version that the stored object lacks is no change.
  const config = Value.Default(schema, Value.Clone(object["config"]));
  return secretUses(withConfig(record, schema), { ...object, config });
}

interface Refused {
  readonly use: SecretUse;
  /** The changed fields of its destination. */
  readonly fields: readonly string[];
}

/** The first new use without the secret's value in the request; null: none. */
function firstNew(
  before: readonly SecretUse[],
  after: readonly SecretUse[],
  draft: Draft,
): Refused | null {
  const known = new Set(before.map(keyOf));
  for (const use of after) {
    if (known.has(keyOf(use))) continue;
    if (use.sealed !== null && draft.wasSent(use.sealed)) continue;
    const old = before.find(({ value, pattern }) => value === use.value && pattern === use.pattern);
    return { use, fields: changedFields(old, use) };
  }
  return null;
}

/** Equal for two uses that send the same secret to the same destination. */
const keyOf = ({ value, pattern, destination }: SecretUse): string =>
  JSON.stringify([value, pattern, destination.map((field) => [field.pattern, field.value])]);

/** Paths of the fields that differ; all fields for an entirely new use. */
function changedFields(old: SecretUse | undefined, use: SecretUse): string[] {
  const values = (of: SecretUse | undefined) =>
    new Map((of?.destination ?? []).map(({ path, value }) => [path, value]));
  const [before, after] = [values(old), values(use)];
  const paths = [...new Set([...after.keys(), ...before.keys()])];
  const changed = paths.filter((path) => before.get(path) !== after.get(path));
  // With a reference to another secret the destination is unchanged, and so is a field that is both.
  const named = (changed.length > 0 ? changed : paths).filter((path) => path !== use.path);
  // The kind of the object is the least specific.
  const own = named.filter((path) => path !== "name" && path !== "type");
  return own.length > 0 ? own : named;
}

function refusal({ use, fields }: Refused, place: ObjectRef, draft: Draft): ApiError {
  const where = fields.join(", ");
  const message =
    use.name === null
      ? `must be sent again, because its destination changes (${where}); only an admin may omit it`
      : `only an admin may send the secret "${use.name}" to this destination (${where}); send the value itself instead`;
  const problem = { ...place, path: use.path, message, status: 400 } as const;
  return new ApiError(403, describeProblem(problem, draft));
}
