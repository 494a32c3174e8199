// Values of labels, which are texts, as a JSON Schema wants them; knows no label.
import type { TSchema } from "@sinclair/typebox";
import { KIND, memberSchema } from "../../model/schema-walk.ts";

const optionsOf = (schema: TSchema): readonly TSchema[] =>
  schema.anyOf === undefined ? [schema] : (schema.anyOf as TSchema[]).flatMap(optionsOf);

/** The schema of a field; undefined: there is none. */
function fieldAt(schema: TSchema, [name, ...rest]: readonly string[]): TSchema | undefined {
  if (name === undefined) return schema;
  for (const option of optionsOf(schema)) {
    const member = memberSchema(option, name);
    if (member !== undefined) return fieldAt(member, rest);
  }
  return undefined;
}

/** Whether a field is a secret. */
export const isSecretField = (schema: TSchema, path: readonly string[]): boolean => {
  const field = fieldAt(schema, path);
  return field !== undefined && optionsOf(field).some((option) => option[KIND] === "secret");
};

/** `text` as a value of the field; undefined: there is no such field, or it is no text, number, flag or list of these. */
export function valueFor(schema: TSchema, path: readonly string[], text: string): unknown {
  const field = fieldAt(schema, path);
  if (field === undefined) return undefined;
  for (const option of optionsOf(field)) {
    const value = toValue(option, text);
    if (value !== undefined) return value;
  }
  return undefined;
}

function toValue(schema: TSchema, text: string): unknown {
  switch (schema.type) {
    case "string":
      return text;
    case "integer":
    case "number":
      return text === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
    case "boolean":
      return /^(?:true|false)$/i.test(text) ? text.toLowerCase() === "true" : undefined;
    case "array": {
      const items = text === "" ? [] : text.split(/\s*,\s*/);
      const values = items.map((item) => valueFor(schema.items as TSchema, [], item));
      return values.includes(undefined) ? undefined : values;
    }
    default:
      return undefined;
  }
}
