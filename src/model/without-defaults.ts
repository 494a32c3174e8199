// A value without what its schema fills in again; knows no resource.
import type { TSchema } from "@sinclair/typebox";
import { dependentDefault, filled } from "./dependent-defaults.ts";
import { alternativeOf, memberSchema } from "./schema-walk.ts";

type Members = Readonly<Record<string, unknown>>;

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
    else if (!isDefaultIn(schema, name, value as Members))
      kept.push([name, shortened(inner, member)]);
  }
  return Object.fromEntries(kept);
}

function isDefaultIn(schema: TSchema, name: string, members: Members): boolean {
  const own = dependentDefault(schema, name, members);
  if (own !== undefined) return Bun.deepEquals(own, members[name]);
  const member = memberSchema(schema, name);
  if (member === undefined || !("default" in member)) return false;
  return Bun.deepEquals(absentOf(member), filled(member, members[name]));
}
