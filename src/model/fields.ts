// Schema pieces that several resources share; knows no resource.
import { type TSchema, Type as t } from "@sinclair/typebox";

/** Options of every described field: the text shown in the API reference. */
type Described = { readonly description: string };

/** Ends the description of a write-only field: what a PUT or PATCH without it means. */
export const KEPT = "Write-only: a later write without it leaves it unchanged";
/** The same for a secret that the gateway sends to a destination that its object names. */
export const KEPT_THERE = `${KEPT} unless its destination changes`;
/** The same for an object with any number of them. */
export const ALL_KEPT =
  "Secrets in it are write-only: a later write without them leaves them unchanged unless their destination changes";

/** A number of milliseconds, 0 to one day; 0 means "no limit" wherever a limit is meant. */
export const milliseconds = (initial: number, description: string) =>
  t.Integer({ minimum: 0, maximum: 86_400_000, default: initial, description });

/** A whole number with a default. */
export const integer = (
  initial: number,
  range: { readonly minimum: number; readonly maximum: number } & Described,
) => t.Integer({ ...range, default: initial });

export const flag = (initial: boolean, description: string) =>
  t.Boolean({ default: initial, description });

/** A value or null; null is the default. */
export const nullable = <T extends TSchema>(schema: T, description: string) =>
  t.Union([schema, t.Null()], { default: null, description });

/** One of a list of words. */
export const oneOf = <const T extends readonly string[]>(
  words: T,
  options: Described & { readonly default?: T[number] },
) =>
  t.Unsafe<T[number]>({
    type: "string",
    enum: [...words],
    ...options,
  });

/** A list that is empty by default. */
export const listOf = <T extends TSchema>(schema: T, description: string, maxItems = 1000) =>
  t.Array(schema, { default: [], maxItems, description });

/** An object whose fields all have defaults, so that it may be left out. */
export const group = <T extends Record<string, TSchema>>(properties: T, description: string) =>
  t.Object(properties, { additionalProperties: false, default: {}, description });

/** A unique name: printable, no leading or trailing space, and nothing that reads like an id. */
export const name = (description: string) =>
  t.String({
    minLength: 1,
    maxLength: 128,
    pattern: "^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$",
    errorMessage:
      "must start and end with a letter, a digit or _, and hold only letters, digits, spaces and . ~ _ -",
    description,
  });

/** Fields that most resources carry. */
export const labels = {
  tags: listOf(t.String({ minLength: 1, maxLength: 128 }), "Tags to filter lists by: `?tag=`", 100),
  description: t.String({ maxLength: 4096, default: "", description: "Free text" }),
};

/** Fields that the gateway sets on every object; sent by a client they are checked against the stored ones or ignored. */
export const identity = {
  id: t.String({ format: "uuid", description: "UUIDv7, set by the gateway" }),
  created_at: t.String({ format: "date-time", description: "RFC 3339, UTC" }),
  updated_at: t.String({ format: "date-time", description: "RFC 3339, UTC" }),
};

/** What every stored object has beside its own fields. */
export interface Identity {
  readonly id: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** UUID in its canonical text form, RFC 9562. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
