// Turns unknown JSON into a typed value or one readable error; the only place where bodies are validated.
import { FormatRegistry, Kind, type Static, type TSchema, TypeRegistry } from "@sinclair/typebox";
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value";
import type { Defaults } from "./compact.ts";
import { filled } from "./dependent-defaults.ts";
import { ApiError, invalid } from "./error.ts";
import { UUID_PATTERN } from "./fields.ts";
import { storeNames } from "./host-name.ts";
import { suggested, suggestion } from "./suggestion.ts";

FormatRegistry.Set("uuid", (text) => UUID_PATTERN.test(text));
FormatRegistry.Set("date-time", isTime);
// Unsafe schemas are our enums: without this their words would not be checked.
TypeRegistry.Set<{ enum?: readonly unknown[] }>(
  "Unsafe",
  (schema, value) => schema.enum?.includes(value) ?? true,
);

/** RFC 3339 5.6. `Date` finds a year in nearly any text and reads February 30 as March 2. */
function isTime(text: string): boolean {
  const [, day = ""] =
    /^(\d{4}-\d\d-\d\d)[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/.exec(text) ?? [];
  if (day === "" || Number.isNaN(Date.parse(text))) return false;
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}

/**
 * Checks `value` against `schema`: defaults are filled in, unknown fields are refused.
 * Throws the 400 of the first thing that is wrong, `path: message`, with some of the others. The input is not changed.
 */
export function decode<T extends TSchema>(schema: T, value: unknown): Static<T> {
  refuseSurplus(schema, value);
  const whole = filled(schema, value);
  const bent = findCoercion(value, whole, "");
  const misnamed = bent === null ? storeNames(schema, whole) : null;
  // Several times as fast as the list of errors, which few values need.
  if (bent === null && misnamed === null && Value.Check(schema, whole)) return whole as Static<T>;
  const problems = new Map<string, string>();
  for (const problem of [bent, misnamed])
    if (problem !== null) problems.set(problem.path, problem.message);
  for (const error of Value.Errors(schema, whole)) {
    for (const worst of mostSpecific(error)) {
      const path = toPath(worst.path);
      // Of a value that is wrong in several ways the first one is enough.
      if (!problems.has(path)) problems.set(path, messageOf(worst));
    }
    if (problems.size > MAX_OTHERS) break;
  }
  const list = [...problems].map(([path, message]) => invalid(path, message));
  // A field that is missing because its name is misspelt comes behind the one that is there.
  const isMisspelt = ({ message }: ApiError) => {
    const [, name] = /([^.\]]+): is required$/.exec(message) ?? [];
    return name !== undefined && list.some((other) => other.message.endsWith(suggested(name)));
  };
  const [first, ...others] = list.toSorted((a, b) => Number(isMisspelt(a)) - Number(isMisspelt(b)));
  if (first === undefined) return whole as Static<T>;
  throw new ApiError(first.status, first.message, { others });
}

/** A value may have any number of errors. */
const MAX_OTHERS = 100;

/** More fields than there are: says the first unknown one before they are copied, which takes long for many thousands. */
function refuseSurplus(schema: TSchema, value: unknown): void {
  const { properties, additionalProperties } = schema;
  if (properties === undefined || additionalProperties !== false) return;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return;
  const names = Object.keys(value);
  if (names.length <= Object.keys(properties as object).length + MAX_OTHERS) return;
  const unknown = names.find((name) => !Object.hasOwn(properties as object, name));
  if (unknown !== undefined) throw invalid(unknown, unknownField(schema, unknown));
}

/** The defaults of a schema; required members are missing. */
export const defaultsOf = (schema: TSchema): Defaults => filled(schema, {}) as Defaults;

/** What an object with this schema has in the place of an unknown field. */
function unknownField(schema: TSchema, name: string): string {
  const names = Object.keys((schema.properties ?? {}) as object);
  return formerly(schema, name) ?? `is not a known field${suggestion(name, names)}`;
}

/** The keyword of what an older version had, by name: a field of an object, or a word of a choice. What is to be done now. */
export const FORMER = "x-former";

const formerly = (schema: TSchema, name: string): string | undefined =>
  (schema[FORMER] as Readonly<Record<string, string>> | undefined)?.[name];

interface Coercion {
  readonly path: string;
  readonly message: string;
}

/**
 * The library accepts a list for an object with free names, and any object for a list, an empty one unless it has a length.
 * Returns the first such coercion, or null.
 */
function findCoercion(sent: unknown, filled: unknown, path: string): Coercion | null {
  if (typeof sent !== "object" || sent === null) return null;
  if (Array.isArray(filled) && !Array.isArray(sent)) return { path, message: "must be a list" };
  if (Array.isArray(sent) && typeof filled === "object" && !Array.isArray(filled))
    return { path, message: "must be an object" };
  for (const [key, member] of Object.entries(sent)) {
    if (typeof member !== "object" || member === null) continue;
    const name = Array.isArray(sent) ? `[${key}]` : path === "" ? key : `.${key}`;
    const inside = (filled as Readonly<Record<string, unknown>> | null)?.[key];
    const found = findCoercion(member, inside, path + name);
    if (found !== null) return found;
  }
  return null;
}

/** `/targets/0/port` -> `targets[0].port`. */
function toPath(pointer: string): string {
  let path = "";
  for (const raw of pointer.split("/").slice(1)) {
    const key = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(key)) path += `[${key}]`;
    else path += path === "" ? key : `.${key}`;
  }
  return path;
}

/** Of a failed union, the alternative that the value came nearest to: its error lies deepest. */
function mostSpecific(error: ValueError): readonly ValueError[] {
  if (error.type !== ValueErrorType.Union) return [error];
  const alternatives = (error.schema.anyOf as TSchema[]).filter((schema) => schema.type !== "null");
  const only = alternatives[0];
  // "null or X": the value was meant as an X, so say what is wrong with it as one.
  if (alternatives.length === 1 && only !== undefined) {
    const inner = [...Value.Errors(only, Value.Default(only, Value.Clone(error.value)))];
    const [top] = inner;
    if (top === undefined || (top.path === "" && isOfOtherType(top))) return [error];
    return inner
      .flatMap(mostSpecific)
      .map((nested) => ({ ...nested, path: error.path + nested.path }));
  }
  let best = error;
  for (const alternative of error.errors) {
    const first = alternative.First();
    if (first === undefined) continue;
    const [inner = first] = mostSpecific(first);
    if (inner.path.length > best.path.length) best = inner;
  }
  return [best];
}

/** Not a string where one is wanted, and so on: then null would have been right as well. */
function isOfOtherType({ type }: ValueError): boolean {
  return [
    ValueErrorType.String,
    ValueErrorType.Integer,
    ValueErrorType.Number,
    ValueErrorType.Boolean,
    ValueErrorType.Object,
    ValueErrorType.Array,
  ].includes(type);
}

function messageOf(error: ValueError): string {
  const { schema } = error;
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return unknownField(schema, nameIn(error.path));
    case ValueErrorType.ObjectRequiredProperty:
      return "is required";
    case ValueErrorType.Integer:
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.Number:
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.NumberMaximum:
      return `must be ${describe(schema)}`;
    case ValueErrorType.StringPattern:
      return schema.errorMessage ?? `must match ${schema.pattern}`;
    case ValueErrorType.StringMaxLength:
      return `must have at most ${schema.maxLength} characters`;
    case ValueErrorType.StringMinLength:
      return schema.minLength === 1
        ? "must not be empty"
        : `must have at least ${schema.minLength} characters`;
    case ValueErrorType.StringFormat:
      return schema.format === "uuid"
        ? "must be an id"
        : "must be a time, such as 2026-01-31T12:00:00Z";
    case ValueErrorType.ArrayMaxItems:
      return `must have at most ${schema.maxItems} elements`;
    case ValueErrorType.ArrayMinItems:
      return `must have at least ${schema.minItems} elements`;
    default: {
      const former = formerly(schema, String(error.value));
      if (former !== undefined) return `must be ${describe(schema)}: ${former}`;
      return `must be ${describe(schema)}${suggestion(String(error.value), wordsOf(schema))}`;
    }
  }
}

/** The last step of a JSON pointer. */
const nameIn = (pointer: string): string =>
  pointer
    .slice(pointer.lastIndexOf("/") + 1)
    .replaceAll("~1", "/")
    .replaceAll("~0", "~");

/** The words of a choice. */
const wordsOf = (schema: TSchema): string[] =>
  [schema.enum ?? [], ((schema.anyOf ?? []) as TSchema[]).flatMap(wordsOf), schema.const ?? []]
    .flat()
    .filter((word): word is string => typeof word === "string");

/** A schema in words: `an integer from 1 to 65535`, `one of "http", "https"`. */
function describe(schema: TSchema): string {
  if (Array.isArray(schema.enum))
    return `one of ${schema.enum.map((word) => JSON.stringify(word)).join(", ")}`;
  if (Array.isArray(schema.anyOf))
    return [...new Set((schema.anyOf as TSchema[]).map(describe))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  switch (schema.type) {
    case "integer":
    case "number":
      return `${schema.type === "integer" ? "an integer" : "a number"}${range(schema)}`;
    case "string":
      return "a string";
    case "boolean":
      return "true or false";
    case "array":
      return "a list";
    case "object":
      return "an object";
    case "null":
      return "null";
    default:
      return schema[Kind] === "Unknown" ? "any value" : "valid";
  }
}

function range(schema: TSchema): string {
  if (schema.minimum !== undefined && schema.maximum !== undefined)
    return ` from ${schema.minimum} to ${schema.maximum}`;
  if (schema.minimum !== undefined) return ` of at least ${schema.minimum}`;
  if (schema.maximum !== undefined) return ` of at most ${schema.maximum}`;
  return "";
}
