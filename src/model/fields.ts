// Schema pieces that several resources share; knows no resource.
import { Kind, type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { proxyNames } from "./known-proxies.ts";

/** How the web UI shows a field or an object of fields. No part of the API: `withoutForm` removes it. */
export interface FieldForm {
  /** Label; default: the name of the field. */
  readonly title?: string;
  /** Help; default: the description. */
  readonly help?: string;
  /** Id of its section; default: the first one. */
  readonly group?: string;
  /** Place among the fields of its section, which otherwise keep the order of the schema; default: 0. */
  readonly order?: number;
  /** Values of fields beside it with which it is shown. A field that is not shown has its default. */
  readonly when?: FieldCondition | readonly FieldCondition[];
  /** Needed while it is shown, or under a condition, although its default is empty. */
  readonly isNeeded?: true | FieldCondition;
  /** Label of each value, as JSON unless it is a string. */
  readonly options?: Readonly<Record<string, string>>;
  /** With `options`: other texts are allowed, in an input with this label. */
  readonly other?: string;
  /** What 0 means. */
  readonly zero?: string;
  readonly unit?: "ms" | "s" | "B" | "%";
  readonly example?: string;
  /** A rule that the gateway checks by code, so that its error shows while the user types. */
  readonly check?: { readonly pattern: string; readonly message: string };
  /** Only when an object is created. */
  readonly isNewOnly?: true;
  /** The input, unless the schema alone determines it; `bare`: its section is its label; `none`: it has none. */
  readonly input?: "long" | "code" | "plain-number" | "checks" | "radios" | "row" | "bare" | "none";
  /** Collection whose objects it refers to by id. */
  readonly of?: string;
  /** Values of fields of these objects: only such objects are offered. */
  readonly only?: Readonly<Record<string, readonly unknown[]>>;
  /** Of an object: the sections of its fields, in order. */
  readonly groups?: readonly FormGroup[];
}

/** Values by the name of a field, or of an element of its list; of several conditions one is enough. */
export type FieldCondition = Readonly<Record<string, readonly unknown[]>>;

export interface FormGroup {
  readonly id: string;
  readonly title: string;
  readonly text?: string;
  /** Whether it is closed at first. */
  readonly folded?: boolean;
  /** Shown while it is closed and all fields have their defaults. */
  readonly summary?: string;
}

interface Shown {
  readonly form?: FieldForm;
}

/** Options of every described field: the text shown in the API reference. */
type Described = { readonly description: string } & Shown;

/** For JSON.stringify: leaves out how the web UI shows fields. */
export const withoutForm = (key: string, value: unknown): unknown =>
  key === "form" && !Object.hasOwn(value as object, Kind) ? undefined : value;

const shown = (form: FieldForm | undefined): Shown => (form === undefined ? {} : { form });

/** Ends the description of a write-only field: what a PUT or PATCH without it means. */
export const KEPT = "Write-only: a later write without it leaves it unchanged";
/** The same for a secret that the gateway sends to a destination that its object names. */
export const KEPT_THERE = `${KEPT} unless its destination changes`;
/** The same for an object with any number of them. */
export const ALL_KEPT =
  "Secrets in it are write-only: a later write without them leaves them unchanged unless their destination changes";

/** A number of milliseconds, 0 to one day; 0 means "no limit" wherever a limit is meant. */
export const milliseconds = (initial: number, description: string, form?: FieldForm) =>
  t.Integer({
    minimum: 0,
    maximum: 86_400_000,
    default: initial,
    description,
    ...shown(form),
  });

/** A whole number with a default. */
export const integer = (
  initial: number,
  range: { readonly minimum: number; readonly maximum: number } & Described,
) => t.Integer({ ...range, default: initial });

export const flag = (initial: boolean, description: string, form?: FieldForm) =>
  t.Boolean({ default: initial, description, ...shown(form) });

/** A value or null; null is the default. */
export const nullable = <T extends TSchema>(schema: T, description: string, form?: FieldForm) =>
  t.Union([schema, t.Null()], { default: null, description, ...shown(form) });

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

/** A list that is empty by default, or holds `initial`. */
export const listOf = <T extends TSchema>(
  schema: T,
  description: string,
  {
    maxItems = 1000,
    initial = [],
    form,
  }: Shown & { readonly maxItems?: number; readonly initial?: readonly Static<T>[] } = {},
) => t.Array(schema, { default: [...initial], maxItems, description, ...shown(form) });

/** An object whose fields all have defaults, so that it may be left out. */
export const group = <T extends Record<string, TSchema>>(
  properties: T,
  description: string,
  form?: FieldForm,
) =>
  t.Object(properties, { additionalProperties: false, default: {}, description, ...shown(form) });

/** What the UI says about a host pattern while the user types; the gateway checks more. */
export const hostCheck: FieldForm["check"] = {
  pattern:
    "^(\\*|(\\*\\.)?[\\p{L}\\p{N}_-]+(\\.[\\p{L}\\p{N}_-]+)*\\.?|\\[?[0-9a-f:.]+\\]?)(:\\d+)?$",
  message: "is not a host name: enter shop.example.com or *.example.com, without https:// and path",
};

/** The same of a network. */
const networkCheck = {
  pattern: "^(?:\\d{1,3}(?:\\.\\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]*)(?:/\\d{1,3})?$",
  message: "is not an address or network such as 10.0.0.0/8 or 2001:db8::/32",
};

/** An address or network. */
export const cidr = t.String({ minLength: 1, maxLength: 64, form: { check: networkCheck } });

/** The same, or the name of a well-known proxy. */
export const proxyNetwork = t.String({
  minLength: 1,
  maxLength: 64,
  "x-names": proxyNames,
  form: {
    check: {
      pattern: networkCheck.pattern.replace("^(?:", `^(?:(?:${proxyNames.join("|")})$|`),
      message: `${networkCheck.message}, or ${proxyNames.join(", ")}`,
    },
  },
});

/** A unique name: printable, no leading or trailing space, and nothing that reads like an id. */
export const name = (description: string, form: FieldForm = {}) =>
  t.String({
    minLength: 1,
    maxLength: 128,
    pattern: "^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$",
    errorMessage:
      "must start and end with a letter, a digit or _, and hold only letters, digits, spaces and . ~ _ -",
    description,
    form: { help: "", order: -9, ...form },
  });

/** Fields that most resources carry. */
export const labels = {
  tags: listOf(t.String({ minLength: 1, maxLength: 128 }), "Tags to filter lists by: `?tag=`", {
    maxItems: 100,
    form: { help: "Labels for search and filters", group: "labels" },
  }),
  description: t.String({
    maxLength: 4096,
    default: "",
    description: "Free text",
    form: { help: "", group: "labels", input: "long" },
  }),
};

/** Fields that the gateway sets on every object; sent by a client they are checked against the stored ones or ignored. */
export const identity = {
  id: t.String({ format: "uuid", description: "UUIDv7, set by the gateway" }),
  created_at: t.String({ format: "date-time", description: "RFC 3339, UTC" }),
  updated_at: t.String({ format: "date-time", description: "RFC 3339, UTC" }),
  managed_by: t.Optional(
    t.String({
      maxLength: 128,
      description:
        "The source that keeps the object as it is, such as `docker`: the API refuses changes of it. Absent: people change it",
    }),
  ),
};

/** What every stored object has beside its own fields. */
export interface Identity {
  readonly id: string;
  readonly created_at: string;
  readonly updated_at: string;
  /** Absent: people change it. */
  readonly managed_by?: string;
}

/** The mark of a managed object, for a new version of it. */
export const markOf = ({ managed_by }: { readonly managed_by?: string | undefined }) =>
  managed_by === undefined ? {} : { managed_by };

/** UUID in its canonical text form, RFC 9562. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
