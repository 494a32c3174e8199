// Which part of a schema a part of a value belongs to; knows no resource and no plugin.
import type { TSchema } from "@sinclair/typebox";

/** The kind of a text beyond its schema; `secret` marks what is stored encrypted. */
export const KIND = "x-kind";

/** Of the alternatives of a union the one that the value belongs to. */
export const alternativeOf = (schema: TSchema, value: unknown): TSchema | undefined =>
  (schema.anyOf as TSchema[]).find((each) => fits(each, value));

/** Undefined for a member that is not in the schema. */
export function memberSchema(schema: TSchema, key: string): TSchema | undefined {
  if (isNamedMember(schema, key)) return (schema.properties as Record<string, TSchema>)[key];
  const patterns = schema.patternProperties as Record<string, TSchema> | undefined;
  return patterns === undefined ? undefined : Object.values(patterns)[0];
}

/** Whether the schema names the member, which is otherwise one of any number. */
export const isNamedMember = ({ properties }: TSchema, key: string): boolean =>
  properties !== undefined && Object.hasOwn(properties as object, key);

function fits(schema: TSchema, value: unknown): boolean {
  if (value === null) return schema.type === "null";
  // What stands for a secret is an object where a text is wanted.
  if (schema[KIND] === "secret") return typeof value === "string" || typeof value === "object";
  switch (schema.type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && !Array.isArray(value);
    case "integer":
      return typeof value === "number";
    default:
      return schema.type === typeof value;
  }
}
