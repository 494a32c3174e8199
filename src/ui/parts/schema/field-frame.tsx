// The shared context of schema form fields: props, texts and errors; renders no field.
import { Code } from "@mantine/core";
import { type ComponentType, createContext, type ReactNode, useContext } from "react";
import { isDocument } from "../../api/merge-patch.ts";
import { descriptionOf, isNeeded, type JsonSchema, labelOf, shapeOf } from "./shape.ts";

/** Path and schema of a field. */
export interface FieldInfo {
  /** `limits.0.requests`; empty for the whole. */
  readonly path: string;
  /** Last part of the path. */
  readonly name: string;
  readonly label: string;
  readonly schema: JsonSchema;
  readonly isNeeded: boolean;
  /** The example value at this path. */
  readonly example: unknown;
  /** Whether it stands in a row, where its label is not shown. */
  readonly isInRow?: boolean;
}

/** Of a member of an object. */
export function memberInfo({ path, schema, example }: FieldInfo, name: string): FieldInfo {
  return {
    path: path === "" ? name : `${path}.${name}`,
    name,
    label: labelOf(name, schema.properties?.[name] ?? {}),
    schema: schema.properties?.[name] ?? {},
    isNeeded: isNeeded(schema, name) || schema.properties?.[name]?.form?.isNeeded === true,
    example: isDocument(example) ? example[name] : undefined,
  };
}

export interface FieldInputProps {
  readonly info: FieldInfo;
  readonly value: unknown;
  /** Undefined removes the field, so that its default applies. */
  readonly onChange: (value: unknown) => void;
}

export interface FieldProps extends FieldInputProps {
  /** Whether a frame with a heading surrounds it. */
  readonly isBare?: boolean;
}

export interface FormFacts {
  /** Renders any field, for nested fields of lists and objects. */
  readonly field: ComponentType<FieldProps>;
  /** By path. */
  readonly errors: Readonly<Record<string, string>>;
  /** Whether write-only secrets may be stored. */
  readonly isStored: boolean;
  readonly isReadOnly: boolean;
  /** Whether it is a page of sections and columns; else objects are frames with folded parts. */
  readonly isPage: boolean;
  /** Inputs made by hand, by path. */
  readonly overrides: Readonly<Record<string, ComponentType<FieldInputProps>>>;
}

export const FormFactsContext = createContext<FormFacts>({
  field: () => null,
  errors: {},
  isStored: false,
  isReadOnly: false,
  isPage: false,
  overrides: {},
});

export const useFormFacts = (): FormFacts => useContext(FormFactsContext);

/** A nested field. */
export function InnerField(props: FieldProps) {
  const { field: Field } = useFormFacts();
  return <Field {...props} />;
}

/** The error of a field; with `isDeep` also the first one below it. */
export function useErrorAt(path: string, isDeep = false): string | null {
  const { errors } = useFormFacts();
  const own = errors[path];
  if (own !== undefined) return own;
  if (!isDeep) return null;
  const below = Object.entries(errors).find(([at]) => at.startsWith(`${path}.`));
  return below === undefined ? null : below[1];
}

/** How many errors there are at these paths and below. */
export function useErrorCount(paths: readonly string[]): number {
  const all = Object.keys(useFormFacts().errors);
  return all.filter((at) => paths.some((path) => at === path || at.startsWith(`${path}.`))).length;
}

/** Label, help, error and required mark, as input props. */
export function useTexts(info: FieldInfo, isDeep = false) {
  const { path, label, schema, isNeeded, isInRow = false } = info;
  const error = useErrorAt(path, isDeep);
  const { isReadOnly } = useFormFacts();
  return {
    label: isInRow ? undefined : label,
    description: isInRow ? undefined : help(schema),
    ...(isInRow ? { "aria-label": label } : {}),
    error,
    disabled: isReadOnly,
    withAsterisk: isNeeded,
  };
}

/** The description for a form, in which an empty input replaces null. */
export function help(schema: JsonSchema): ReactNode {
  const { help: own, zero } = schema.form ?? {};
  const text = own ?? descriptionOf(schema).replaceAll(/\bnull(?=:| )/g, "empty");
  const parts = [text, zero === undefined ? "" : `0: ${zero}`].filter((part) => part !== "");
  return parts.length === 0 ? undefined : <Marked text={parts.join(". ")} />;
}

/** The value of an empty input. */
export function emptyOf(schema: JsonSchema): "" | null | undefined {
  if (shapeOf(schema).isNullable) return null;
  return schema.default === "" ? "" : undefined;
}

/** Text with code in backticks. */
export function Marked({ text }: { readonly text: string }) {
  const parts = text.split("`").map((part, at) => ({ part, at, isCode: at % 2 === 1 }));
  if (parts.length < 3) return text;
  return <>{parts.map(({ part, at, isCode }) => (isCode ? <Code key={at}>{part}</Code> : part))}</>;
}

/** The placeholder: the default, else an example. */
export function placeholderOf({ schema, example }: FieldInfo): string {
  const { default: initial, form } = schema;
  if ((typeof initial === "string" && initial !== "") || typeof initial === "number")
    return String(initial);
  if (Array.isArray(initial) && initial.length > 0) return initial.join(", ");
  if (form?.example !== undefined) return form.example;
  if (initial !== undefined && initial !== null) return "";
  const shown = Array.isArray(example) ? example.join(", ") : example;
  return typeof shown === "string" || typeof shown === "number"
    ? `such as ${String(shown).slice(0, 60)}`
    : "";
}
