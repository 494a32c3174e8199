// Converts the plugin request-validator of Kong to the plugin request-validation; knows no other plugin.
import { type Document, isDocument } from "../../control/body.ts";
import type { Members } from "../members.ts";
import type { PluginConverter } from "./plugins.ts";

/** Null: without an equivalent. */
type Schema = Document | null;

export const requestValidator: PluginConverter = (config) => {
  const body = bodyOf(config);
  const parameters = parametersOf(config);
  if (body === undefined || parameters === null) {
    config.drop("its schema has no equivalent: write it in the plugin request-validation");
    return null;
  }
  const given = config.has("allowed_content_types") ? config.texts("allowed_content_types") : null;
  const types = (given ?? ["application/json"]).map((type) => type.split(";", 1)[0]?.trim() ?? "");
  config.omit("content_type_parameter_validation", "parameters of media types are not compared");
  return {
    name: "request-validation",
    config: {
      body_schema: body,
      ...parameters,
      content_types: [...new Set(types)],
      verbose_errors: config.flag("verbose_response") ?? false,
    },
  };
};

/** Undefined: it has no equivalent. */
function bodyOf(config: Members): Schema | undefined {
  const version = config.text("version") ?? "kong";
  const text = config.raw("body_schema");
  if (text === null || text === "") return null;
  const parsed = typeof text === "string" ? parsedOf(text) : text;
  if (version === "kong")
    return Array.isArray(parsed) ? (recordOf(parsed) ?? undefined) : undefined;
  return isDocument(parsed) && isPortable(parsed) ? withoutVersion(parsed) : undefined;
}

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const withoutVersion = ({ $schema: _, ...rest }: Document): Document => rest;

/** Keywords that later versions of JSON Schema have under other names, or ignore: they would allow more. */
const OLD = new Set(["dependencies", "additionalItems", "id", "$recursiveRef", "definitions"]);

/** Whether the schema has the same meaning in JSON Schema 2020-12. */
function isPortable(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isPortable);
  if (!isDocument(value)) return true;
  return Object.entries(value).every(([name, inner]) => {
    // A property may have any name.
    if (name === "properties" && isDocument(inner)) return Object.values(inner).every(isPortable);
    if (OLD.has(name) || (name === "items" && Array.isArray(inner))) return false;
    if (/^exclusive/.test(name) && typeof inner === "boolean") return false;
    return isPortable(inner);
  });
}

/** Kong's own schema: a list of objects with one field each. Unknown fields are errors. */
function recordOf(fields: readonly unknown[]): Schema {
  const properties: Record<string, Document> = {};
  const required: string[] = [];
  for (const field of fields) {
    const [entry, ...others] = isDocument(field) ? Object.entries(field) : [];
    if (entry === undefined || others.length > 0 || !isDocument(entry[1])) return null;
    const schema = fieldOf(entry[1]);
    if (schema === null) return null;
    properties[entry[0]] = schema;
    if (entry[1]["required"] === true) required.push(entry[0]);
  }
  return { type: "object", properties, required, additionalProperties: false };
}

const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean"]);
const NAMES: Readonly<Record<string, string>> = {
  one_of: "enum",
  len_min: "minLength",
  len_max: "maxLength",
  gt: "exclusiveMinimum",
};

function fieldOf({ type, required: _, ...rest }: Document): Schema {
  if (type === "record" && Array.isArray(rest["fields"])) return recordOf(rest["fields"]);
  if (type === "array" && isDocument(rest["elements"])) {
    const { elements, ...more } = rest;
    const items = fieldOf(elements as Document);
    return items === null || Object.keys(more).length > 0 ? null : { type: "array", items };
  }
  if (!TYPES.has(type)) return null;
  const found: Record<string, unknown> = { type };
  for (const [name, value] of Object.entries(rest)) {
    if (name === "between" && Array.isArray(value)) {
      [found["minimum"], found["maximum"]] = value;
      continue;
    }
    const keyword = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
    if (keyword === undefined) return null;
    found[keyword] = value;
  }
  return found as Document;
}

/** Schemas of the query and the headers; null: a parameter has no equivalent. */
function parametersOf(config: Members): Document | null {
  const found = { query: objectSchema(), header: objectSchema() };
  for (const parameter of config.objects("parameter_schema")) {
    const place = parameter.text("in") ?? "";
    const name = parameter.text("name") ?? "";
    const text = parameter.raw("schema");
    const schema = text === null ? {} : typeof text === "string" ? parsedOf(text) : text;
    const isUsual = ["form", "simple", null].includes(parameter.text("style"));
    parameter.raw("explode");
    const own = place === "query" ? found.query : place === "header" ? found.header : null;
    if (own === null || !isDocument(schema) || !isPortable(schema) || !isUsual) return null;
    const key = place === "header" ? name.toLowerCase() : name;
    own.properties[key] = withoutVersion(schema);
    if (parameter.flag("required") === true) own.required.push(key);
  }
  const schemas = Object.entries(found).filter(
    ([, { properties }]) => Object.keys(properties).length > 0,
  );
  return Object.fromEntries(
    schemas.map(([place, schema]) => [`${place}_schema`, { type: "object", ...schema }]),
  );
}

const objectSchema = () => ({
  properties: {} as Record<string, Document>,
  required: [] as string[],
});
