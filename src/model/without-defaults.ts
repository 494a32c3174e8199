// A value without what its schema fills in again; knows no resource.
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { alternativeOf, memberSchema } from "./schema-walk.ts";

type Members = Readonly<Record<string, unknown>>;

/** The value with all defaults. */
const filled = (schema: TSchema, value: unknown): unknown =>
  Value.Default(schema, Value.Clone(value));

/** What each schema makes of an absent value: schemas live as long as the program. */
const absent = new WeakMap<TSchema, { readonly value: unknown }>();

function absentOf(schema: TSchema): unknown {
  let known = absent.get(schema);
  if (known === undefined) {
    known = { value: filled(schema, undefined) };
    absent.set(schema, known);
  }
  return known.value;
}

/** A copy without members at their defaults, at every depth. `decode` makes the same of both. */
export function withoutDefaults(schema: TSchema, value: unknown): unknown {
  const shorter = shortened(schema, value);
  const isSame = Bun.deepEquals(filled(schema, shorter), filled(schema, value));
  return isSame ? shorter : value;
}

function shortened(schema: TSchema, value: unknown): unknown {
  if (Array.isArray(schema.anyOf)) {
    const alternative = alternativeOf(schema, value);
    if (alternative === undefined) return value;
    // Of several objects in a union, what is missing may decide which one it is.
    return Bun.deepEquals(filled(schema, shortened(alternative, value)), filled(schema, value))
      ? shortened(alternative, value)
      : value;
  }
  if (Array.isArray(value)) {
    const items = schema.items as TSchema | undefined;
    return items === undefined ? value : value.map((item) => shortened(items, item));
  }
  if (typeof value !== "object" || value === null) return value;
  const kept: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value as Members)) {
    const inner = memberSchema(schema, name);
    if (inner === undefined) kept.push([name, member]);
    else if (!isDefault(inner, member)) kept.push([name, shortened(inner, member)]);
  }
  return Object.fromEntries(kept);
}

const isDefault = (schema: TSchema, value: unknown) =>
  "default" in schema && Bun.deepEquals(absentOf(schema), filled(schema, value));
