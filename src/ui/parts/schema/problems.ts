// Validates a value against a JSON Schema while typing; compiles no code, which the Content-Security-Policy forbids.
import { type Document, isDocument } from "../../api/merge-patch.ts";
import { isNeeded, isSecret, type JsonSchema, labelOf, optionsOf, memberOf } from "./shape.ts";
import { holds, isShown } from "./values.ts";

export interface Problem {
  /** `limits.0.requests` */
  readonly path: string;
  readonly message: string;
  /** Nothing entered yet, which is an error only on saving. */
  readonly isMissing: boolean;
}

/** Empty: valid. Absent values with a default are valid. */
export function problemsOf(schema: JsonSchema, value: unknown, path = ""): readonly Problem[] {
  if (isSecret(schema) && (isDocument(value) || value === null)) return [];
  if (schema.anyOf !== undefined) return ofUnion(schema, value, path);
  if (schema.type !== undefined && !hasType(schema.type, value))
    return [problem(path, `must be ${TYPES[schema.type] ?? schema.type}`)];
  if (schema.const !== undefined && value !== schema.const)
    return [problem(path, `must be ${JSON.stringify(schema.const)}`)];
  if (schema.enum !== undefined && !(schema.enum as readonly unknown[]).includes(value))
    return [problem(path, `must be one of ${schema.enum.join(", ")}`)];
  if (typeof value === "string") return toProblems(path, ofText(schema, value));
  if (typeof value === "number") return toProblems(path, ofNumber(schema, value));
  if (Array.isArray(value)) return ofList(schema, value, path);
  return isDocument(value) ? ofObject(schema, value, path) : [];
}

const problem = (path: string, message: string, isMissing = false): Problem => ({
  path,
  message,
  isMissing,
});

const toProblems = (path: string, message: string | null): readonly Problem[] =>
  message === null ? [] : [problem(path, message)];

const under = (path: string, name: string | number): string =>
  path === "" ? String(name) : `${path}.${name}`;

const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  integer: "a whole number",
  number: "a number",
  boolean: "yes or no",
  array: "a list",
  object: "an object",
  null: "empty",
};

function hasType(type: string, value: unknown): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isDocument(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
}

function ofUnion(schema: JsonSchema, value: unknown, path: string): readonly Problem[] {
  if (value === null && isNullable(schema)) return [];
  const options = optionsOf(schema);
  const all = options.map((option) => problemsOf(option, value, path));
  if (all.some((problems) => problems.length === 0)) return [];
  const fitting = options.findIndex(({ type }) => type !== undefined && hasType(type, value));
  const only = options.length === 1 ? 0 : fitting;
  return all[only] ?? [problem(path, "does not match any allowed type")];
}

const isNullable = (schema: JsonSchema): boolean =>
  schema.type === "null" || (schema.anyOf ?? []).some(isNullable);

function ofText(schema: JsonSchema, value: string): string | null {
  const { minLength = 0, maxLength = Infinity, pattern, errorMessage } = schema;
  if (value.length < minLength)
    return minLength === 1 ? "must not be empty" : `needs at least ${minLength} characters`;
  if (value.length > maxLength) return `must have at most ${maxLength} characters`;
  const { example, check } = schema.form ?? {};
  if (check !== undefined && !new RegExp(check.pattern, "iu").test(value)) return check.message;
  if (pattern === undefined || new RegExp(pattern, "u").test(value)) return null;
  const message = errorMessage ?? "does not match the required format";
  return example === undefined || message.includes("such as")
    ? message
    : `${message}, such as ${example}`;
}

function ofNumber(schema: JsonSchema, value: number): string | null {
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const { exclusiveMinimum: above = -Infinity, exclusiveMaximum: below = Infinity } = schema;
  if (value < minimum) return `must be at least ${minimum}`;
  if (value > maximum) return `must be at most ${maximum}`;
  if (value <= above) return `must be more than ${above}`;
  return value >= below ? `must be less than ${below}` : null;
}

function ofList(schema: JsonSchema, value: readonly unknown[], path: string): readonly Problem[] {
  const { items, minItems = 0, maxItems = Infinity } = schema;
  const own =
    value.length < minItems
      ? `needs at least ${minItems === 1 ? "one" : minItems}`
      : value.length > maxItems
        ? `must have at most ${maxItems}`
        : null;
  const inner = value.flatMap((item, index) =>
    // The API returns null for a secret.
    items === undefined || item === undefined || (item === null && items["x-kind"] === "secret")
      ? []
      : problemsOf(items, item, under(path, index)),
  );
  return [...toProblems(path, own), ...inner];
}

function isMissing(schema: JsonSchema, name: string, values: Document): boolean {
  const value = values[name];
  const field = schema.properties?.[name] ?? {};
  const { isNeeded: condition } = field.form ?? {};
  if (condition === undefined) return isNeeded(schema, name) && value === undefined;
  const isAsked = isShown(field, values) && (condition === true || holds(condition, values));
  return isAsked && (value === undefined || value === null || value === "");
}

const missingText = (label: string): string =>
  /[^s]s$/.test(label) ? `${label} are required` : `${label} is required`;

function ofObject(
  schema: JsonSchema,
  value: Readonly<Record<string, unknown>>,
  path: string,
): readonly Problem[] {
  const { properties = {} } = schema;
  const missing = Object.keys(properties)
    .concat((schema.required ?? []).filter((name) => !Object.hasOwn(properties, name)))
    .filter((name) => isMissing(schema, name, value))
    .map((name) =>
      problem(under(path, name), missingText(labelOf(name, properties[name] ?? {})), true),
    );
  const inner = Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined) return [];
    const at = under(path, name);
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known !== undefined)
      // Null removes the stored value.
      return member === null && (known.default !== undefined || known["x-kind"] === "secret")
        ? []
        : problemsOf(known, member, at);
    const free = memberOf(schema);
    if (free !== null) return problemsOf(free, member, at);
    return schema.additionalProperties === false && schema.patternProperties === undefined
      ? [problem(at, "is not a known field")]
      : [];
  });
  return [...missing, ...inner];
}
