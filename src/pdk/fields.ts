// Building blocks for configuration schemas of plugins, and the kinds of their texts; knows no plugin.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { type Condition, condition as conditionSchema } from "../model/condition.ts";
import { type FieldForm, KEPT_THERE } from "../model/fields.ts";
import { alternativeOf, KIND, memberSchema } from "../model/schema-walk.ts";

/** The kind of a text, which the gateway checks beyond its schema when the instance is written. */
export type TextKind =
  | "secret"
  | "regex"
  | "cidr"
  | "url"
  | "server"
  | "template"
  | "header_name"
  | "header_value"
  | "service"
  | "consumer"
  | "text_or_regex"
  | "condition";

interface TextOptions {
  /** How the web UI shows it. */
  readonly form?: FieldForm;
  readonly description: string;
  readonly default?: string;
  readonly maxLength?: number;
}

const text = (kind: TextKind, options: TextOptions) =>
  t.String({ maxLength: 4096, ...options, [KIND]: kind });

/**
 * Write-only: stored encrypted, never in responses, unchanged when absent from a later write. May be given as
 * `{"$secret": "name"}`. Handlers get the value. Wrap it in `t.Optional` when it is not required.
 */
export const secret = ({ description, ...options }: Omit<TextOptions, "default">) =>
  t.String({
    minLength: 1,
    maxLength: 65_536,
    ...options,
    writeOnly: true,
    description: `${description}. ${KEPT_THERE}`,
    [KIND]: "secret",
  });

/** A regular expression without unbounded backtracking. */
export const regex = (options: TextOptions) => text("regex", { ...options, maxLength: 1024 });

/** An exact text, or `~` and a regular expression that must match the whole; see `compileTexts`. */
export const textOrRegex = (options: TextOptions) =>
  t.String({ minLength: 1, maxLength: 1024, ...options, [KIND]: "text_or_regex" });

/** The anchored expression of such a text: without anchors `https://a.example.evil.com` would match `a.example`. */
export const wholeRegex = (text: string): string => `^(?:${text.slice(1)})$`;

/** Whether a text matches one of these. Expressions do not match texts longer than `maxLength`. */
export function compileTexts(
  texts: readonly string[],
  maxLength = 1024,
): (text: string) => boolean {
  const exact = new Set(texts.filter((each) => !each.startsWith("~")));
  const regexes = texts
    .filter((each) => each.startsWith("~"))
    .map((each) => new RegExp(wholeRegex(each)));
  return (text) =>
    exact.has(text) || (text.length <= maxLength && regexes.some((each) => each.test(text)));
}

/** A condition on requests; compile it with `compileCondition`. */
export const condition = (description: string) =>
  t.Unsafe<Condition>({ ...conditionSchema, default: {}, description, [KIND]: "condition" });

/** An address or a network. */
export const cidr = (options: TextOptions) =>
  t.String({ minLength: 1, maxLength: 64, ...options, [KIND]: "cidr" });

/** http:// or https://. */
export const url = (options: TextOptions) => text("url", options);

/** A URL of another scheme, or a host with a port, to which the gateway connects. */
export const server = (options: Parameters<typeof t.String>[0]) =>
  t.String({ ...options, [KIND]: "server" });

/** Text with `${request.header.x}` and so on in it, see `compileTemplate`. */
export const template = (options: TextOptions) => text("template", options);

/** Name of a header field. */
export const headerName = (options: TextOptions) =>
  t.String({ minLength: 1, maxLength: 256, ...options, [KIND]: "header_name" });

/** Value of a header field. */
export const headerValue = (options: TextOptions) => text("header_value", options);

/** Id or name of a service; stored as the id. */
export const serviceReference = (options: TextOptions) =>
  t.String({ minLength: 1, maxLength: 128, ...options, [KIND]: "service" });

/** Id or username of a consumer; stored as the id. */
export const consumerReference = (options: TextOptions) =>
  t.String({ minLength: 1, maxLength: 128, ...options, [KIND]: "consumer" });

/** A value or null, which is the default. */
export const nullable = <T extends TSchema>(schema: T) =>
  t.Union([schema, t.Null()], {
    default: null,
    ...(schema.description === undefined ? {} : { description: schema.description }),
  });

/** A list, empty by default. */
export const listOf = <T extends TSchema>(
  schema: T,
  options: {
    readonly description: string;
    readonly maxItems?: number;
    readonly default?: unknown[];
  },
) => t.Array(schema, { default: [], maxItems: 1000, ...options });

/** An enumeration of words. */
export const oneOf = <const T extends readonly string[]>(
  words: T,
  options: { readonly description: string; readonly default?: T[number] },
) => t.Unsafe<T[number]>({ type: "string", enum: [...words], ...options });

/** An enumeration of status codes. */
export const statusOf = <const T extends readonly number[]>(
  statuses: T,
  options: { readonly description: string; readonly default: T[number] },
) => t.Unsafe<T[number]>({ type: "integer", enum: [...statuses], ...options });

export const flag = (initial: boolean, description: string) =>
  t.Boolean({ default: initial, description });

export const integer = (
  initial: number,
  range: { readonly minimum: number; readonly maximum: number; readonly description: string },
) => t.Integer({ ...range, default: initial });

/** Milliseconds; default `initial`. */
export const milliseconds = (initial: number, description: string) =>
  integer(initial, { minimum: 1, maximum: 86_400_000, description });

/** An object whose fields all have defaults, so that it may be absent. */
export const group = <T extends Record<string, TSchema>>(properties: T, description: string) =>
  t.Object(properties, { additionalProperties: false, default: {}, description });

/** The configuration of a plugin. */
export const config = <T extends Record<string, TSchema>>(properties: T) =>
  t.Object(properties, { additionalProperties: false });

/** A text of a kind, with its path. */
export interface KindedText {
  readonly kind: TextKind;
  /** Inside the configuration: `users[0].password`. */
  readonly path: string;
  /** Mostly a string; of a secret also the reference to one. */
  readonly value: unknown;
}

/**
 * A copy of `value` in which `replace` has replaced every text with a kind; undefined drops a member. Values that do not
 * match the schema are copied as they are.
 */
export function mapTexts(
  schema: TSchema,
  value: unknown,
  replace: (text: KindedText) => unknown,
): unknown {
  return walk({ schema, value, path: "" }, replace);
}

interface Node {
  readonly schema: TSchema;
  readonly value: unknown;
  readonly path: string;
}

function walk({ schema, value, path }: Node, replace: (text: KindedText) => unknown): unknown {
  const kind = schema[KIND] as TextKind | undefined;
  if (kind !== undefined && value !== null && value !== undefined)
    return replace({ kind, path, value });
  if (Array.isArray(schema.anyOf)) {
    const alternative = alternativeOf(schema, value);
    return alternative === undefined ? value : walk({ schema: alternative, value, path }, replace);
  }
  if (Array.isArray(value)) {
    const items = schema.items as TSchema | undefined;
    if (items === undefined) return value;
    return value.map((item, at) =>
      walk({ schema: items, value: item, path: `${path}[${at}]` }, replace),
    );
  }
  if (typeof value !== "object" || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const inner = memberSchema(schema, key);
    const at = path === "" ? key : `${path}.${key}`;
    const next =
      inner === undefined ? member : walk({ schema: inner, value: member, path: at }, replace);
    if (next !== undefined) result[key] = next;
  }
  return result;
}

/** All texts with a kind in a configuration. */
export function textsOf(schema: TSchema, value: unknown): KindedText[] {
  const texts: KindedText[] = [];
  mapTexts(schema, value, (each) => {
    texts.push(each);
    return each.value;
  });
  return texts;
}
