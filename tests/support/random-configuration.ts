// Configurations with random fields: whatever their schemas allow and the gateway accepts.
import type { TSchema } from "@sinclair/typebox";
import type { Document } from "../../src/control/body.ts";
import type { CollectionName } from "../../src/model/gateway-config.ts";
import { recordSchemas } from "../../src/model/records.ts";
import type { PluginCatalogue } from "../../src/snapshot/plugin-config.ts";
import type { Random } from "./random.ts";

/** Whether the gateway accepts a document. */
export type Accepts = (document: Document) => Promise<boolean>;

const WORDS = ["a", "X-A", "/a", "=/b", "~^/c", "a.test", "*.b.test", "10.0.0.0/8", "GET", "200"];

/** A value that the schema may allow; undefined: none is known. */
function valueFor(schema: TSchema, random: Random, depth = 0): unknown {
  if (schema.enum !== undefined) return random.pick(schema.enum as unknown[]);
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf !== undefined)
    return valueFor(random.pick(schema.anyOf as TSchema[]), random, depth);
  if (random.chance(0.2) && schema.default !== undefined) return structuredClone(schema.default);
  switch (schema.type) {
    case "null":
      return null;
    case "boolean":
      return random.chance(0.5);
    case "integer":
    case "number":
      return random.between(schema.minimum ?? 0, Math.min(schema.maximum ?? 1000, 100_000) + 1);
    case "string":
      return random.pick([...WORDS, schema.form?.example ?? "a"]);
    case "array": {
      const length = random.between(schema.minItems ?? 0, 3);
      return Array.from({ length }, () => valueFor(schema.items as TSchema, random, depth + 1));
    }
    case "object": {
      const members = Object.entries((schema.properties ?? {}) as Record<string, TSchema>);
      const needed = (name: string, { default: usual }: TSchema) =>
        usual === undefined && ((schema.required as string[] | undefined) ?? []).includes(name);
      return Object.fromEntries(
        members
          .filter(([name, member]) => needed(name, member) || random.chance(0.4 / (depth + 1)))
          .map(([name, member]) => [name, valueFor(member, random, depth + 1)]),
      );
    }
    default:
      return undefined;
  }
}

/** Gives the object members that its schema has, one by one, and retains those with which the document is accepted. */
async function grow(
  object: Record<string, unknown>,
  schema: TSchema,
  { random, isValid }: { readonly random: Random; readonly isValid: () => Promise<boolean> },
): Promise<void> {
  for (const [name, member] of Object.entries(schema.properties as Record<string, TSchema>)) {
    if (name in object || name.endsWith("_id") || !random.chance(0.5)) continue;
    const value = valueFor(member, random);
    if (value === undefined) continue;
    object[name] = value;
    if (!(await isValid())) delete object[name];
  }
}

/** A document of services, targets, routes, stream routes, consumers, plugins and settings without secrets. */
export async function randomConfiguration(
  random: Random,
  plugins: PluginCatalogue,
  accepts: Accepts,
): Promise<Document> {
  const settings: Record<string, unknown> = {};
  const lists: Partial<Record<CollectionName, Record<string, unknown>[]>> = {};
  const document = { format: 1, settings, ...lists } as Record<string, unknown>;
  const isValid = () => accepts(document);
  const add = async (collection: CollectionName, object: Record<string, unknown>) => {
    const list = ((document[collection] as unknown[] | undefined) ?? []) as unknown[];
    document[collection] = [...list, object];
    if (await isValid()) await grow(object, recordSchemas[collection], { random, isValid });
    else document[collection] = list;
  };
  for (const name of ["web", "shop"]) {
    await add("services", { name });
    await add("targets", { service_id: name, host: `${name}.test`, port: 80 });
    await add("routes", { name, service_id: name, hosts: [`${name}.test`] });
    await add("consumers", { username: name });
  }
  await add("services", { name: "db", protocol: "tcp" });
  await add("stream_routes", { name: "db", listen_port: 20_000, service_id: "db" });
  await grow(settings, recordSchemas.settings, { random, isValid });
  for (let index = 0; index < 4; index++) {
    const name = random.pick([...plugins.keys()]);
    const scope = random.pick([{}, { route_id: "web" }, { service_id: "shop" }]);
    const schema = plugins.get(name)?.config as TSchema;
    const config = valueFor({ ...schema, default: undefined } as TSchema, random) as Document;
    await add("plugins", { name, ...scope, config });
  }
  return document;
}
