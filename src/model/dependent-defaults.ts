// Fills in the defaults of a schema, also those that depend on other fields of their object; knows no resource.
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { FieldCondition } from "./fields.ts";

/** The keyword of a field whose default depends on fields beside it: the first that fits, else `default`. */
export const DEFAULTS = "x-defaults";

/** It fits where `when` holds and `unless`, as a whole, does not. */
export interface DependentDefault {
  readonly when?: FieldCondition;
  readonly unless?: FieldCondition;
  readonly default: unknown;
}

type Members = Readonly<Record<string, unknown>>;
type Fields = Readonly<Record<string, TSchema>>;

/** The fields of each schema that have the keyword: schemas live as long as the program. */
const dependent = new WeakMap<TSchema, readonly string[]>();

function dependentIn(schema: TSchema): readonly string[] {
  let names = dependent.get(schema);
  if (names === undefined) {
    const members = Object.entries((schema.properties ?? {}) as Fields);
    names = members.filter(([, member]) => DEFAULTS in member).map(([name]) => name);
    dependent.set(schema, names);
  }
  return names;
}

/** What `decode` makes of an absent field beside these; undefined: its own default. */
export function dependentDefault(schema: TSchema, name: string, beside: Members): unknown {
  if (!dependentIn(schema).includes(name)) return undefined;
  const fields = schema.properties as Fields;
  const holds = ([field, values]: [string, readonly unknown[]]) =>
    values.includes(beside[field] ?? fields[field]?.default);
  const all = fields[name]?.[DEFAULTS] as readonly DependentDefault[];
  const isMet = (condition: FieldCondition) => Object.entries(condition).every(holds);
  return all.find(
    ({ when = {}, unless }) => isMet(when) && (unless === undefined || !isMet(unless)),
  )?.default;
}

/** The value with all defaults. */
export function filled(schema: TSchema, value: unknown): unknown {
  const copy: unknown = Value.Clone(value);
  if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) {
    const members = copy as Record<string, unknown>;
    for (const name of dependentIn(schema)) {
      const own = members[name] === undefined ? dependentDefault(schema, name, members) : undefined;
      if (own !== undefined) members[name] = own;
    }
  }
  return Value.Default(schema, copy);
}
