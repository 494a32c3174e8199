// Maps a JSON Schema to a field type and a label; renders nothing.
import type { DependentDefault } from "../../../model/dependent-defaults.ts";
import type { FieldForm } from "../../../model/fields.ts";

/** The keywords that the gateway's schemas use. */
export interface JsonSchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  /** Defaults beside other values of the same object: the first that fits, else `default`. */
  readonly "x-defaults"?: readonly DependentDefault[];
  readonly enum?: readonly (string | number)[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly pattern?: string;
  /** Error message for the pattern. */
  readonly errorMessage?: string;
  readonly writeOnly?: boolean;
  readonly const?: unknown;
  readonly form?: FieldForm;
  /** The meaning of a string: a secret, the name of a service. */
  readonly "x-kind"?: string;
  /** Whether it is a destination of secrets. */
  readonly "x-destination"?: boolean;
  /** Why a secret has no destination. */
  readonly "x-stays"?: string;
}

/** The description without notes for API clients; inputs of secrets show these by their placeholder. */
export const descriptionOf = ({ description = "" }: { readonly description?: string }): string =>
  description.replace(/\. Write-only: .*$/s, "");

export type Shape =
  | "text"
  | "long"
  | "secret"
  | "service"
  | "consumer"
  | "reference"
  | "references"
  | "number"
  | "flag"
  | "choice"
  | "words"
  | "choices"
  | "word_or_words"
  | "items"
  | "object"
  | "picked"
  | "pairs"
  | "map"
  | "union"
  | "json";

export interface Shaped {
  readonly shape: Shape;
  /** The schema without null. */
  readonly schema: JsonSchema;
  readonly isNullable: boolean;
}

export function shapeOf(whole: JsonSchema): Shaped {
  const options = optionsOf(whole);
  const [only] = options;
  const isNull = options.length < flatten(whole).length;
  if (whole.writeOnly === true && options.some(({ type }) => type === "string"))
    return { shape: "secret", schema: whole, isNullable: isNull };
  if (whole.form?.options !== undefined && whole.type !== "array")
    return { shape: "choice", schema: whole, isNullable: false };
  if (whole.anyOf === undefined || only === undefined)
    return { shape: plainShape(whole), schema: whole, isNullable: false };
  const isNullable = whole.anyOf.length > 0 && isNull;
  if (options.length === 1)
    return {
      shape: plainShape({ ...only, ...texts(whole) }),
      schema: { ...whole, ...only, ...texts(whole) },
      isNullable,
    };
  return { shape: isTextOrList(options) ? "word_or_words" : "union", schema: whole, isNullable };
}

const texts = ({ description, default: initial, form }: JsonSchema): JsonSchema => ({
  ...(description === undefined ? {} : { description }),
  ...(initial === undefined ? {} : { default: initial }),
  ...(form === undefined ? {} : { form }),
});

const flatten = (schema: JsonSchema): readonly JsonSchema[] =>
  schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(flatten);

/** The alternatives of a union, those of unions in it included, without null. */
export const optionsOf = (schema: JsonSchema): readonly JsonSchema[] =>
  flatten(schema).filter(({ type }) => type !== "null");

const isTextOrList = ([one, other, ...rest]: readonly JsonSchema[]): boolean =>
  rest.length === 0 &&
  one?.type === "string" &&
  one.enum === undefined &&
  other?.type === "array" &&
  other.items?.type === "string";

function plainShape(schema: JsonSchema): Shape {
  switch (schema.type) {
    case "string":
      return textShape(schema);
    case "integer":
    case "number":
      return schema.enum === undefined ? "number" : "choice";
    case "boolean":
      return "flag";
    case "array":
      return schema.form?.of === undefined ? listShape(schema.items ?? {}) : "references";
    case "object":
      return objectShape(schema);
    default:
      return "json";
  }
}

function textShape({ enum: words, maxLength = 0, "x-kind": kind, form }: JsonSchema): Shape {
  if (words !== undefined) return isSwitch(words) ? "flag" : "choice";
  if (form?.of !== undefined) return "reference";
  if (form?.input === "long" || form?.input === "code") return "long";
  if (kind === "secret" || kind === "service" || kind === "consumer") return kind;
  return maxLength > 20_000 ? "long" : "text";
}

const isSwitch = (words: readonly unknown[]): boolean =>
  words.length === 2 && words.includes("on") && words.includes("off");

function listShape(item: JsonSchema): Shape {
  const { shape } = shapeOf(item);
  const options = optionsOf(item);
  // Numbers and texts, such as 204 and 200-299.
  if (options.length > 1 && options.every(({ type = "" }) => /^(?:string|integer)$/.test(type)))
    return "words";
  if (shape === "text" || (shape === "number" && item.type === "integer")) return "words";
  if (shape === "choice") return "choices";
  return shape === "json" ? "json" : "items";
}

function objectShape(schema: JsonSchema): Shape {
  const { properties, required = [] } = schema;
  if (properties === undefined || Object.keys(properties).length === 0) {
    const value = memberOf(schema);
    if (value === null) return "json";
    const { shape, isNullable } = shapeOf(value);
    if (shape === "text" && !isNullable) return "pairs";
    return shape === "json" ? "json" : "map";
  }
  const all = Object.values(properties);
  // An object in an external format, such as a JWK set.
  if (all.length === 1 && all.every((each) => shapeOf(each).shape === "json")) return "json";
  return required.length === 0 && all.length > 2 ? "picked" : "object";
}

/** The schema of a map's values; null: any. */
export function memberOf({ patternProperties, additionalProperties }: JsonSchema) {
  const [first] = Object.values(patternProperties ?? {});
  const value = first ?? (typeof additionalProperties === "object" ? additionalProperties : null);
  return value === null || (value.type === undefined && value.anyOf === undefined) ? null : value;
}

/** Whether a value must be entered: required and without a default. */
export const isNeeded = (schema: JsonSchema, name: string): boolean =>
  (schema.required ?? []).includes(name) && schema.properties?.[name]?.default === undefined;

/** Whether it contains a secret. */
export const hasSecret = (schema: JsonSchema): boolean => hasPart(schema, isSecret);

/** Whether its value is write-only. */
export const isSecret = (schema: JsonSchema): boolean =>
  schema["x-kind"] === "secret" || schema.writeOnly === true;

/** Whether a stored secret may be named instead. */
export const mayBeNamed = (schema: JsonSchema): boolean =>
  schema["x-kind"] === "secret" || optionsOf(schema).some(({ type }) => type === "object");

/** Whether it contains a destination of secrets. */
export const hasDestination = (schema: JsonSchema): boolean =>
  hasPart(schema, (part) => part["x-destination"] === true);

function hasPart(schema: JsonSchema, isIt: (part: JsonSchema) => boolean): boolean {
  const inner = [
    ...Object.values(schema.properties ?? {}),
    ...Object.values(schema.patternProperties ?? {}),
    ...(schema.anyOf ?? []),
    ...(schema.items === undefined ? [] : [schema.items]),
  ];
  return isIt(schema) || inner.some((part) => hasPart(part, isIt));
}

export type Unit = "ms" | "s" | "B" | "%";

/** The unit of a number, from its name and description. */
export function unitOf(name: string, { description = "", form }: JsonSchema): Unit | null {
  if (form?.unit !== undefined) return form.unit;
  if (/_ms$/.test(name) || /^milliseconds\b/i.test(description)) return "ms";
  if (/^seconds\b|\bin seconds\b/i.test(description)) return "s";
  return /^bytes\b|\bso many bytes\b/i.test(description) || /_bytes$/.test(name) ? "B" : null;
}

const CAPITALS = new Set(
  "id url uri ttl tls http https ip ipv6 dns csp hsts jwks jwt json html ca dn san asn cidr ms api pkce otlp udp tcp tsig".split(
    " ",
  ),
);

/** `jwks_cache_ttl` is `JWKS cache TTL`. */
export function toLabel(name: string): string {
  const words = name.split(/[_-]/).filter((word) => word !== "");
  const shown = words.map((word) => (CAPITALS.has(word) ? word.toUpperCase() : word)).join(" ");
  return shown.charAt(0).toUpperCase() + shown.slice(1);
}

/** The label of a field. */
export const labelOf = (name: string, { form }: JsonSchema): string => form?.title ?? toLabel(name);

/** `Limits` is `Limit`. */
export function toSingular(label: string): string {
  if (label.endsWith("ies") && !/okies$/i.test(label)) return `${label.slice(0, -3)}y`;
  return label.endsWith("s") && !label.endsWith("ss") ? label.slice(0, -1) : label;
}

/** The meanings of enum values, from the description: `fixed: begins anew; sliding: …`. */
export function meaningsOf({ description = "", enum: words = [] }: JsonSchema) {
  const found = new Map<string, string>();
  for (const part of description.split(/;\s+/)) {
    const [, word = "", text = ""] = /^([\w.-]+): (.+)$/s.exec(part) ?? [];
    if ((words as readonly unknown[]).includes(word)) found.set(word, text);
  }
  return found.size === words.length ? found : null;
}
