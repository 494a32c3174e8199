// What all fields of a form drawn from a schema share: what they are told, their texts, where their errors come from; draws no field.
import { Code } from "@mantine/core";
import { type ComponentType, createContext, type ReactNode, useContext } from "react";
import { descriptionOf, type JsonSchema } from "./shape.ts";

/** Where a field is and what it is about. */
export interface Spot {
  /** `limits.0.requests`; empty for the whole. */
  readonly path: string;
  /** Last part of the path. */
  readonly name: string;
  readonly label: string;
  readonly schema: JsonSchema;
  readonly isNeeded: boolean;
  /** What the example of the whole has here. */
  readonly example: unknown;
}

export interface SpotProps {
  readonly spot: Spot;
  readonly value: unknown;
  /** Undefined takes the field out, so that its default counts. */
  readonly onChange: (value: unknown) => void;
}

export interface FieldProps extends SpotProps {
  /** Whether a frame with a heading is around it already. */
  readonly isBare?: boolean;
}

export interface FormFacts {
  /** Draws any field: lists and objects have fields in them, whatever these are. */
  readonly field: ComponentType<FieldProps>;
  /** By path. */
  readonly errors: Readonly<Record<string, string>>;
  /** Whether secrets may be there that nobody is shown. */
  readonly isStored: boolean;
  readonly isReadOnly: boolean;
}

export const FormFactsContext = createContext<FormFacts>({
  ...{ field: () => null, errors: {}, isStored: false, isReadOnly: false },
});

export const useFormFacts = (): FormFacts => useContext(FormFactsContext);

/** A field inside another one. */
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

/** Label, help, error and mark, as all inputs take them. */
export function useTexts({ path, label, schema, isNeeded }: Spot, isDeep = false) {
  const error = useErrorAt(path, isDeep);
  const { isReadOnly } = useFormFacts();
  return {
    label,
    error,
    disabled: isReadOnly,
    withAsterisk: isNeeded,
    description: schema.description === undefined ? undefined : help(schema),
  };
}

/** The description in the words of a form, where nothing is entered instead of null. */
export function help(schema: JsonSchema): ReactNode {
  return <Marked text={descriptionOf(schema).replaceAll(/\bnull(?=:| )/g, "empty")} />;
}

/** Text in which what stands between backticks is code. */
export function Marked({ text }: { readonly text: string }) {
  const parts = text.split("`").map((part, at) => ({ part, at, isCode: at % 2 === 1 }));
  if (parts.length < 3) return text;
  return <>{parts.map(({ part, at, isCode }) => (isCode ? <Code key={at}>{part}</Code> : part))}</>;
}

/** What stands in an empty field: the default, else an example. */
export function placeholderOf({ schema, example }: Spot): string {
  const { default: initial } = schema;
  if (typeof initial === "string" || typeof initial === "number") return String(initial);
  if (Array.isArray(initial) && initial.length > 0) return initial.join(", ");
  if (initial !== undefined && initial !== null) return "";
  const shown = Array.isArray(example) ? example.join(", ") : example;
  return typeof shown === "string" || typeof shown === "number"
    ? `such as ${String(shown).slice(0, 60)}`
    : "";
}
