// Fields and values that had another name in files of an older version; knows no schema.
import { type Document, isDocument } from "../../control/body.ts";
import { withoutExactResponses, withPresentEngine } from "../../model/former-engines.ts";

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

/** What an object of a collection is today. */
const converted: readonly {
  readonly in: string;
  convert(value: Document): Readonly<Record<string, unknown>>;
  /** A sentence for users: what they have got. */
  readonly warning: string;
}[] = [
  {
    in: "listeners",
    convert: withPresentEngine,
    warning:
      'listeners have the engines "sluice" and "bun" now: "standard", "full" and shared_engines became "sluice"; "bun" is what "standard" was',
  },
  {
    in: "routes",
    convert: withoutExactResponses,
    warning:
      'exact_responses of routes is gone: responses on listeners with engine "sluice" are always exact',
  },
];

/**
 * A copy of an imported configuration with the present names and values, and a warning for each kind of value that was converted.
 * A field given under both names stays: the schema refuses it.
 */
export function withPresentNames(given: Document): {
  readonly document: Document;
  readonly warnings: readonly string[];
} {
  const warnings: string[] = [];
  let document = renamedFields.reduce((value, field) => renamed(value, field) as Document, given);
  for (const { in: name, convert, warning } of converted) {
    const objects = document[name];
    if (!Array.isArray(objects)) continue;
    const present = objects.map((one: unknown) => (isDocument(one) ? convert(one) : one));
    if (present.every((one, index) => one === objects[index])) continue;
    document = { ...document, [name]: present };
    warnings.push(warning);
  }
  return { document, warnings };
}

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
