// What a collection is: one definition, from which storage, rules, API and forms are derived; knows no collection.
import { type TObject, type TSchema, Type as t } from "@sinclair/typebox";
import { type Identity, identity } from "./fields.ts";
import type { ObjectRules } from "./object-rules.ts";
import type { IndexOf } from "./rows.ts";
import type { Role } from "./user.ts";

/** A column of the table beside the JSON document. */
export interface Column<T> {
  readonly of: (object: T) => string | number | null;
  /** Default: text. */
  readonly type?: "integer";
  /** Default: false. */
  readonly isNullable?: boolean;
  /** Whether no two rows have the same value. Default: false. */
  readonly isUnique?: boolean;
  /** The collection whose id it holds. */
  readonly refersTo?: string;
}

/** One object in its collection. */
export interface ObjectKey {
  readonly collection: string;
  readonly id: string;
}

/** How the management API offers a collection. */
export interface ResourceApi {
  /** Below `/api/v1`. Default: the name of the collection with hyphens. */
  readonly path?: string;
  /** Heading in the API reference: `DNS providers`. */
  readonly tag: string;
  /** Name in `components.schemas`; the schema of requests is `${schema}Input`. */
  readonly schema: string;
  /** The schema of requests, where it has more than `input`: targets inside of a service. Default: `input`. */
  readonly body?: TObject;
  /** The schema of its form. Default: that of requests. */
  readonly form?: TObject;
  /** Fields that only responses have. Default: none. */
  readonly view?: TObject;
  /** The least role that may read. Default: viewer. */
  readonly read?: Role;
  /** The least role that may write. Default: editor. */
  readonly write?: Role;
  /** About responses as a whole. Default: nothing. */
  readonly note?: string;
  /** A sentence about replacing one. Default: none. */
  readonly replaceNote?: string;
  /** Whether lists accept `limit`: for collections that may be very large. Default: false. */
  readonly takesLimit?: boolean;
}

/** What a definition states; `T` is an object of the collection. */
export interface ResourceFacts<T extends Identity> {
  /** Singular in sentences: `DNS provider`. */
  readonly word: string;
  /** What clients send. Marks in it, such as those of references, hold for the stored object as well. */
  readonly input: TObject;
  /** What is stored. Default: `input`. */
  readonly record?: TObject;
  /** The stored form of what a request or a record holds. Default: itself. */
  readonly normalize?: (fields: never) => Omit<T, keyof Identity>;
  /** The field with the unique name, which paths and references accept instead of the id; null: there is none. */
  readonly nameField: (keyof T & string) | null;
  /** The word for such a name in the API reference. Default: name. */
  readonly nameWord?: string;
  /** The name in messages. Default: the value of `nameField`, or of `name`. */
  readonly label?: (object: T) => string | null;
  /** What follows the field's name in the error for a name that another object has. Default: `service "web" exists already`. */
  readonly takenText?: string;
  /** Fields that together find an object of a configuration file. Default: `nameField`. */
  readonly identifiedBy?: readonly string[];
  /** Columns beside the identity and the document. Default: the unique name. */
  readonly columns?: Readonly<Record<string, Column<T>>>;
  /** Columns that are unique together, by the name of the index. */
  readonly uniqueTogether?: Readonly<Record<string, readonly string[]>>;
  /** The first format of entries of a fleet that holds such objects. Default: the first one. */
  readonly since?: number;
  /** Whether its objects may hold references to named secrets. Default: false. */
  readonly holdsSecrets?: boolean;
  /** Whether its objects send secrets, so that a new destination needs an admin. Default: false. */
  readonly sendsSecrets?: boolean;
  /** Of objects with a `config`: the field whose value decides the schema of that. */
  readonly configKind?: keyof T & string;
  /** Objects that are deleted with it beside those that refer to it as their owner, and their collections. */
  readonly owns?: {
    readonly collections: readonly string[];
    readonly of: (object: T) => readonly ObjectKey[];
  };
  /** References that the schema does not show: whether the object refers to this one. */
  readonly mentions?: (object: T, other: ObjectKey) => boolean;
  /** What one object must hold beyond its schema; rules between objects are in `snapshot/`. Default: nothing. */
  readonly rules?: ObjectRules<T>;
  /** Filters of lists beside tag, name, q and marked references: what an object is compared by. */
  readonly filters?: Readonly<Record<string, Filter<T>>>;
  readonly api: ResourceApi;
}

interface Filter<T> {
  /** In the API reference. */
  readonly description: string;
  readonly of: (object: T) => string;
}

/** A schema of the API reference by its name. */
export const schemaRef = (name: string) =>
  t.Unsafe<unknown>({ $ref: `#/components/schemas/${name}` });

/** A mark of a schema. A symbol, so that neither JSON nor clients see it. */
const REFERENCE = Symbol("reference");

interface ReferenceMark {
  readonly to: string;
  /** Whether the object belongs to the other one and is deleted with it. */
  readonly isOwner: boolean;
  /** Whether lists can be filtered by it. */
  readonly isFilter: boolean;
}

/**
 * Marks a text as the id of an object of the collection `to`: clients may write its name instead, deleting the other object is
 * refused while this one exists, and a missing one is an error.
 */
export const refersTo = <T extends TSchema>(
  to: string,
  schema: T,
  { isOwner = false, isFilter = false }: Partial<Omit<ReferenceMark, "to">> = {},
): T => ({ ...schema, [REFERENCE]: { to, isOwner, isFilter } satisfies ReferenceMark });

/** A mark like the one of references. */
const SINCE = Symbol("since");

/**
 * Marks a new field of a stored object: nodes of a fleet that read only entries of older formats do not know it. It needs a
 * default, which stands for its absence. A new collection states `since` in its definition.
 */
export const since = <T extends TSchema>(format: number, schema: T): T => ({
  ...schema,
  [SINCE]: format,
});

/** A new field: names joined by dots, through lists. */
export interface NewField {
  readonly since: number;
  readonly field: string;
  readonly absent: unknown;
}

/** All marked fields of a schema. */
export function newFieldsIn(schema: TSchema, path = ""): NewField[] {
  const mark = schema[SINCE as unknown as string] as number | undefined;
  const own = mark === undefined ? [] : [{ since: mark, field: path, absent: schema.default }];
  const inner = [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  const members = Object.entries((schema.properties ?? {}) as Record<string, TSchema>);
  return [
    ...own,
    ...inner.flatMap((part: TSchema) => newFieldsIn(part, path)),
    ...members.flatMap(([name, member]) =>
      newFieldsIn(member, path === "" ? name : `${path}.${name}`),
    ),
  ];
}

/** A field that holds the id of another object, or a list of ids. */
export interface ReferenceField extends ReferenceMark {
  /** `tls.client_certificate_id`, `listener_ids` */
  readonly path: string;
  readonly steps: readonly string[];
  readonly isList: boolean;
}

/** The query parameter of lists for a reference field: `listener_id` for `listener_ids`. */
export const filterName = ({ path, isList }: ReferenceField): string =>
  isList ? path.replace(/s$/, "") : path;

/** The ids in a reference field of an object, with their paths. */
export function idsAt(
  { steps, path }: ReferenceField,
  object: unknown,
): readonly { readonly path: string; readonly id: string }[] {
  let value = object;
  for (const step of steps) value = (value as Readonly<Record<string, unknown>> | null)?.[step];
  if (typeof value === "string") return [{ path, id: value }];
  if (!Array.isArray(value)) return [];
  return value.map((id: string, index) => ({ path: `${path}[${index}]`, id }));
}

function referencesIn(schema: TSchema, steps: readonly string[] = []): ReferenceField[] {
  const mark = markOf(schema);
  if (mark !== null) return [{ ...mark, steps, path: steps.join("."), isList: isList(schema) }];
  const properties = (schema.properties ?? {}) as Record<string, TSchema>;
  return Object.entries(properties).flatMap(([name, member]) =>
    referencesIn(member, [...steps, name]),
  );
}

/** The collection that a field refers to; null: none. */
export const referenceIn = (schema: TSchema): string | null => markOf(schema)?.to ?? null;

const isList = (schema: TSchema) => schema.type === "array";

/** The mark of a field, of its items or of its value beside null. */
function markOf(schema: TSchema): ReferenceMark | null {
  const parts: readonly (TSchema | undefined)[] = [schema, schema.items, ...(schema.anyOf ?? [])];
  for (const part of parts) {
    const mark = part?.[REFERENCE as unknown as string] as ReferenceMark | undefined;
    if (mark !== undefined) return mark;
  }
  return null;
}

/** The schema of what is stored, with the mark of managed objects. */
const managedOf = (record: TObject): TObject => ({
  ...record,
  properties: { ...record.properties, managed_by: since(6, identity.managed_by) },
});

/** A definition with its defaults, and what follows from it. */
export interface ResourceDefinition<T extends Identity> extends ResourceFacts<T> {
  readonly record: TObject;
  readonly normalize: (fields: never) => Omit<T, keyof Identity>;
  readonly identifiedBy: readonly string[];
  readonly columns: Readonly<Record<string, Column<T>>>;
  /** The object in messages: `route "shop"`. */
  readonly labelOf: (object: T | undefined, id: string) => string;
  readonly references: readonly ReferenceField[];
  /** The schema of responses. */
  readonly response: TSchema;
  /** Fields of responses that clients may send back, and that are ignored. */
  readonly readOnly: readonly string[];
}

export function defineResource<T extends Identity>(facts: ResourceFacts<T>): ResourceDefinition<T> {
  const { input, nameField, word, api } = facts;
  const nameOf = (object: T) => object[(nameField ?? "name") as keyof T] as string | null;
  const named = facts.label ?? nameOf;
  const view = api.view ?? t.Object({});
  return {
    normalize: (fields) => fields,
    identifiedBy: nameField === null ? [] : [nameField],
    columns: { [nameField ?? "name"]: { of: nameOf, isUnique: true } },
    ...facts,
    record: managedOf(facts.record ?? input),
    labelOf: (object, id) => `${word} "${(object === undefined ? null : named(object)) ?? id}"`,
    references: referencesIn(input),
    response: t.Composite([t.Object(identity), shownOf(input, view), view], {
      title: input.title ?? api.schema,
      ...(api.note === undefined ? {} : { description: api.note }),
    }),
    readOnly: Object.keys(view.properties).filter(
      (name) => !(name in (api.body ?? input).properties),
    ),
  };
}

/** The definition of a collection that may be very large: its objects are stored packed, and each read decodes a new one. */
export interface LargeResourceDefinition<T extends Identity> extends ResourceDefinition<T> {
  readonly large: LargeFacts<T>;
}

interface LargeFacts<T> {
  /** The lookup keys beside the id. */
  readonly indexes: readonly IndexOf<T>[];
  /** The index by the id of the owner. Default: there is no owner. */
  readonly ownerIndex?: IndexOf<T>;
}

export const defineLargeResource = <T extends Identity>(
  facts: ResourceFacts<T>,
  large: LargeFacts<T>,
): LargeResourceDefinition<T> => ({ ...defineResource(facts), large });

/** The fields of a request that the response has as well. */
function shownOf(input: TObject, view: TObject): TSchema {
  const hidden = Object.entries<TSchema>(input.properties)
    .filter(([name, { writeOnly }]) => writeOnly === true || name in view.properties)
    .map(([name]) => name);
  return hidden.length === 0 ? input : t.Omit(input, hidden);
}
