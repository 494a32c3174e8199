// JSON Schema of configuration files, for editors: what each object may hold, with its defaults; reads no file.
import type { TSchema } from "@sinclair/typebox";
import { DOCUMENT_FORMAT, isSealedField } from "../model/export-document.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  singletonNames,
} from "../model/gateway-config.ts";
import { recordSchemas } from "../model/records.ts";
import { KIND } from "../model/schema-walk.ts";
import { serviceWithTargetsInput } from "../model/service.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";

type Json = Readonly<Record<string, unknown>>;

/** Where SchemaStore, the catalogue that editors read, has the schema of the format. */
const ID = "https://json.schemastore.org/sluice.json";

/** JSON Schema draft 7, which editors support best, and no other keywords. The gateway checks more than it can say. */
export function documentSchema(plugins: PluginCatalogue): Json {
  const lists = collectionNames.map((name) => [
    name,
    {
      type: "array",
      description: `Objects of the collection ${definitionOf(name).api.tag}`,
      items: itemsOf(name, plugins),
    },
  ]);
  const singletons = singletonNames.map((name) => {
    const schema = cleaned(recordSchemas[name]);
    return [
      name,
      {
        ...schema,
        description: singletonTexts[name],
        properties: { ...(schema["properties"] as Json), updated_at: time },
      },
    ];
  });
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: ID,
    title: "Configuration of Sluice",
    description: "What `sluice apply`, `sluice import` and --config-dir read",
    type: "object",
    properties: {
      $schema: { type: "string", description: "Path or URL of this schema, for editors" },
      format: { const: DOCUMENT_FORMAT, description: "Version of the format" },
      program: { type: "string", description: "The program that wrote the file" },
      ...Object.fromEntries([...singletons, ...lists]),
    },
    additionalProperties: false,
  };
}

function itemsOf(name: CollectionName, plugins: PluginCatalogue): Json {
  if (name === "plugins") return ofPlugins(plugins);
  const object = objectOf(recordSchemas[name]);
  if (name !== "services") return object;
  const targets = cleaned(serviceWithTargetsInput.properties.targets);
  return { ...object, properties: { ...(object["properties"] as Json), targets } };
}

const singletonTexts = {
  settings: "Settings of the whole gateway",
  sso: "Single sign-on at an OpenID Connect provider",
} as const;

/** An object of a collection: exports have its identity as well. */
function objectOf(record: TSchema): Json {
  const schema = cleaned(record);
  const { managed_by: _, ...properties } = schema["properties"] as Json;
  const identity = { id: { type: "string" }, created_at: time, updated_at: time };
  return { ...schema, properties: { ...identity, ...properties } };
}

const time = { type: "string", format: "date-time" };

/** The settings of a plugin depend on its name. */
function ofPlugins(plugins: PluginCatalogue): Json {
  const names = [...plugins.keys()];
  const object = objectOf(recordSchemas.plugins);
  const known = { ...(object["properties"] as Json), name: { enum: names } };
  return {
    ...object,
    properties: known,
    allOf: [...plugins].map(([name, { config }]) => ({
      if: { properties: { name: { const: name } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { config: cleaned(config) } },
    })),
  };
}

/** Keywords of JSON Schema that schemas here use. */
const KEYWORDS = new Set([
  ...["type", "enum", "const", "anyOf", "allOf", "items", "properties", "patternProperties"],
  ...["additionalProperties", "required", "default", "description", "title", "examples", "format"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"],
  ...["minProperties", "maxProperties"],
]);

/** A value in a configuration file in the place of a stored secret. */
const secret = {
  description: "A secret as text, or a reference to a stored one; `***`: as it is stored",
  anyOf: [
    { type: ["string", "null"] },
    { type: "object", properties: { $secret: { type: "string" } }, required: ["$secret"] },
    { type: "object", properties: { sealed: {} }, required: ["sealed"] },
  ],
};

function cleaned(schema: TSchema): Json {
  if (schema[KIND] === "secret") return secret;
  const kept = Object.entries(schema).filter(([keyword]) => KEYWORDS.has(keyword));
  return Object.fromEntries(
    kept.flatMap(([keyword, value]): [string, unknown][] => {
      switch (keyword) {
        case "properties":
        case "patternProperties":
          return [[keyword, membersOf(value as Record<string, TSchema>)]];
        case "items":
          return [[keyword, cleaned(value as TSchema)]];
        case "additionalProperties":
          return [[keyword, typeof value === "object" ? cleaned(value as TSchema) : value]];
        case "anyOf":
        case "allOf":
          return [[keyword, (value as TSchema[]).map(cleaned)]];
        case "required": {
          const needed = (value as string[]).filter((name) => !hasDefault(schema, name));
          return needed.length === 0 ? [] : [[keyword, needed]];
        }
        default:
          return [[keyword, value]];
      }
    }),
  );
}

/** Exports hide what is sealed. */
const membersOf = (members: Readonly<Record<string, TSchema>>): Json =>
  Object.fromEntries(
    Object.entries(members).map(([name, member]) => [
      name,
      isSealedField(name) || name.endsWith("_hash") ? {} : cleaned(member),
    ]),
  );

const hasDefault = ({ properties = {} }: TSchema, name: string): boolean => {
  const member = (properties as Readonly<Record<string, TSchema>>)[name];
  return member !== undefined && ("default" in member || isSealedField(name));
};
