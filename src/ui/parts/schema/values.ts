// The values of a form by its schema: defaults, fields that are not shown, summaries; renders nothing.
import type { FieldCondition } from "../../../model/fields.ts";
import { type Document, isDocument, isSame } from "../../api/merge-patch.ts";
import { inWords } from "../fields.tsx";
import { isSecret, type JsonSchema, labelOf, optionsOf, shapeOf, unitOf } from "./shape.ts";

/** The schema with the defaults that its fields have beside these values. */
export function besideValues(schema: JsonSchema, values: Document): JsonSchema {
  const members = Object.entries(schema.properties ?? {});
  if (members.every(([, field]) => field["x-defaults"] === undefined)) return schema;
  const usual = Object.fromEntries(members.map(([name, field]) => [name, field.default]));
  const given = { ...usual, ...values };
  const effective = members.map(([name, field]) => {
    const own = field["x-defaults"]?.find(
      ({ when = {}, unless }) =>
        holds(when, given) && (unless === undefined || !holds(unless, given)),
    );
    return [name, own === undefined ? field : { ...field, default: own.default }] as const;
  });
  return { ...schema, properties: Object.fromEntries(effective) };
}

/** The value with every default, without fields that the schema does not have. */
export function withDefaults(schema: JsonSchema, value: unknown): Document {
  const given = isDocument(value) ? value : {};
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, field]) => [name, defaulted(field, given[name])] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

function defaulted(field: JsonSchema, value: unknown): unknown {
  const { schema, isNullable } = shapeOf(field);
  const isNull = value === null && (isNullable || field.form?.options !== undefined);
  const given = isNull ? null : (value ?? field.default);
  const row = rowOf(schema);
  if (Array.isArray(given) && row !== undefined)
    return given.map((each: unknown) => (isDocument(each) ? withDefaults(row, each) : each));
  if (schema.properties === undefined || (isNullable && !isDocument(given))) return given;
  return withDefaults(schema, given);
}

/** The objects of a list. */
const rowOf = ({ items = {} }: JsonSchema): JsonSchema | undefined =>
  optionsOf(items).find(({ properties }) => properties !== undefined);

/** Whether a field is shown beside these values. */
export const isShown = ({ form }: JsonSchema, beside: Document): boolean =>
  form?.input !== "none" && [form?.when ?? {}].flat().some((condition) => holds(condition, beside));

/** Whether the fields have the values of a condition. */
export const holds = (condition: FieldCondition, fields: Document): boolean =>
  Object.entries(condition).every(([name, values]) =>
    [fields[name]].flat().some((value) => values.includes(value)),
  );

/** As it is sent: fields that are not shown must not fail validation, and rows without any input are not sent. */
export const toSent = (schema: JsonSchema, value: unknown): Document =>
  shownPart(schema, value, (rows) => rows.filter((row) => row !== undefined));

/** The same with each row in its place, to validate it; rows without any input are undefined. */
export const toChecked = (schema: JsonSchema, value: unknown): Document =>
  shownPart(schema, value, (rows) => rows);

type RowsOf = (rows: readonly unknown[]) => readonly unknown[];

function shownPart(schema: JsonSchema, value: unknown, rowsOf: RowsOf): Document {
  const all = withDefaults(schema, value);
  const members = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const isSent = field.form?.input === "none" || isShown(field, all);
    return [name, isSent ? shownValue(field, all[name], rowsOf) : field.default] as const;
  });
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

function shownValue(field: JsonSchema, value: unknown, rowsOf: RowsOf): unknown {
  const { schema } = shapeOf(field);
  if (isDocument(value) && schema.properties !== undefined) return shownPart(schema, value, rowsOf);
  const row = rowOf(schema);
  if (!Array.isArray(value) || row === undefined) return value;
  const empty = withDefaults(row, {});
  return rowsOf(
    value.map((each: unknown) => {
      if (!isDocument(each)) return each;
      const sent = shownPart(row, each, rowsOf);
      return isSame(sent, empty) ? undefined : sent;
    }),
  );
}

/** What differs from the defaults: `Connections: 100; Idle timeout: 10 min`. Empty: nothing. */
export function summaryOf(fields: Readonly<Record<string, JsonSchema>>, values: Document): string {
  const parts = partsOf(fields, values);
  const shown = parts.slice(0, MAX_PARTS).join("; ");
  return parts.length > MAX_PARTS ? `${shown} and ${parts.length - MAX_PARTS} more` : shown;
}

const MAX_PARTS = 4;

const partsOf = (fields: Readonly<Record<string, JsonSchema>>, values: Document): string[] =>
  Object.entries(fields).flatMap(([name, field]) => {
    const value = values[name];
    const { schema } = shapeOf(field);
    if (
      !isShown(field, values) ||
      value === undefined ||
      isSame(value, defaulted(field, undefined))
    )
      return [];
    if (isDocument(value) && schema.properties !== undefined && field.default !== null)
      return partsOf(schema.properties, value);
    const text = textOf(name, schema, value);
    return [text === "" ? labelOf(name, field) : `${labelOf(name, field)}: ${text}`];
  });

/** Empty: the label says enough. */
function textOf(name: string, schema: JsonSchema, value: unknown): string {
  const option = schema.form?.options?.[optionOf(value)];
  if (option !== undefined) return option;
  if (isSecret(schema) || schema.form?.of !== undefined) return "";
  if (typeof value === "number") {
    const unit = unitOf(name, schema);
    if (unit === null) return String(value);
    return (unit === "ms" || unit === "s" ? inWords(value, unit) : "") || `${value} ${unit}`;
  }
  if (value === false) return "off";
  if (typeof value === "string") return value.length > 40 ? "" : value;
  const isPlain = Array.isArray(value) && value.every((each) => typeof each !== "object");
  return isPlain && value.length < 4
    ? value.join(", ")
    : Array.isArray(value)
      ? `${value.length}`
      : "";
}

/** A value as the key of its option. */
export const optionOf = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null);

/** A copy with another member; undefined removes it. */
export function withMember(members: object, name: string, value: unknown): Record<string, unknown> {
  const { [name]: _, ...others } = members as Record<string, unknown>;
  if (value === undefined) return others;
  // In schema order, so that the JSON view does not jump.
  return name in members ? { ...members, [name]: value } : { ...others, [name]: value };
}
