// Writes the fields of a schema as a Markdown table; knows no page.
import type { TSchema } from "@sinclair/typebox";
import { DEFAULTS, type DependentDefault } from "../src/model/dependent-defaults.ts";

interface Row {
  readonly path: string;
  readonly type: string;
  readonly fallback: string;
  readonly description: string;
}

/** A schema of TypeBox or JSON Schema. */
export type Schema = TSchema & {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
};

const code = (value: unknown) => `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;

function typeOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map(code).join(", ");
  if (schema.const !== undefined) return code(schema.const);
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items as Schema)}`;
  if (schema.type === "integer" && schema.maximum !== undefined)
    return schema.maximum >= Number.MAX_SAFE_INTEGER
      ? `integer from ${schema.minimum}`
      : `integer ${schema.minimum} to ${schema.maximum}`;
  return schema.type ?? "any";
}

function rowsOf(schema: Schema, prefix: string): Row[] {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const row = {
      path,
      type: typeOf(field),
      fallback:
        field.default === undefined ? (required.includes(name) ? "required" : "") : shown(field),
      description: field.description ?? "",
    };
    const parts = partsOf(field);
    if (parts.length === 0) return [row];
    const isPlainGroup = field.type === "object";
    return [
      ...(isPlainGroup ? [] : [row]),
      ...parts.flatMap((part) => rowsOf(part, `${path}${field.type === "array" ? "[]" : ""}.`)),
    ];
  });
}

function shown(field: Schema): string {
  const usual = field.default === "" ? "empty" : code(field.default);
  const others = (field[DEFAULTS] ?? []) as readonly DependentDefault[];
  const named = (condition: NonNullable<DependentDefault["when"]>) =>
    Object.entries(condition)
      .map(([name, values]) => `\`${name}\` ${values.map(code).join(" or ")}`)
      .join(" and ");
  const inWords = ({ when, unless, default: value }: DependentDefault) =>
    [
      code(value),
      ...(when === undefined ? [] : [`with ${named(when)}`]),
      ...(unless === undefined ? [] : [`unless ${named(unless)}`]),
    ].join(" ");
  return [usual, ...others.map(inWords)].join(", ");
}

/** Objects inside a field: a group, the items of a list, the value beside null. */
function partsOf(field: Schema): Schema[] {
  const inner = field.type === "array" ? (field.items as Schema) : field;
  return [inner, ...(inner.anyOf ?? [])].filter((part) => part.properties !== undefined);
}

const cell = (text: string) => text.replaceAll("|", "\\|");

/** One line for each field; `mark` adds a sign to its name. */
export function fieldTable(schema: Schema, mark: (path: string) => string = () => ""): string {
  const lines = rowsOf(schema, "").map(
    ({ path, type, fallback, description }) =>
      `| \`${path}\`${mark(path)} | ${cell(type)} | ${cell(fallback)} | ${cell(description)} |`,
  );
  return ["| field | value | default | meaning |", "| --- | --- | --- | --- |", ...lines].join(
    "\n",
  );
}
