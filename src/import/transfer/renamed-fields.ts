// Fields that had another name in files of an older version; knows no schema.
import { type Document, isDocument } from "../../control/body.ts";

interface RenamedField {
  /** Where the object stands that has the field; `*` stands for every element of a list. */
  readonly path: readonly string[];
  readonly from: string;
  readonly to: string;
}

const renamedFields: readonly RenamedField[] = [
  { path: ["services", "*"], from: "collect_bytes", to: "response_buffer_bytes" },
  {
    path: ["applications", "*", "parts", "*", "fields"],
    from: "collect_bytes",
    to: "response_buffer_bytes",
  },
  {
    path: ["settings", "limits"],
    from: "collect_budget_bytes",
    to: "response_buffer_budget_bytes",
  },
];

/** A copy of an imported configuration with the present names. A field given under both names stays: the schema refuses it. */
export const withPresentNames = (document: Document): Document =>
  renamedFields.reduce((value, field) => renamed(value, field) as Document, document);

function renamed(value: unknown, { path, from, to }: RenamedField): unknown {
  const [step, ...rest] = path;
  const inside = (inner: unknown) => renamed(inner, { path: rest, from, to });
  if (step === "*") return Array.isArray(value) ? value.map(inside) : value;
  if (!isDocument(value)) return value;
  if (step !== undefined) return step in value ? { ...value, [step]: inside(value[step]) } : value;
  if (!(from in value) || to in value) return value;
  const { [from]: given, ...others } = value;
  return { ...others, [to]: given };
}
