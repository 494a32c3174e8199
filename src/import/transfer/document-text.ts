// The text of a configuration file, object by object: one of 100,000 routes takes seconds. Knows no resource.
import { isDocument } from "../../control/body.ts";
import type { Steps } from "../../pace.ts";
import type { DocumentType } from "./source.ts";

/** As `JSON.stringify(document, null, 2)` or `Bun.YAML.stringify(document, null, 2)` at once, with a line feed at the end. */
export function* textSteps(document: object, type: DocumentType): Steps<string> {
  return type === "json" ? yield* jsonSteps(document) : yield* yamlSteps(document);
}

/** A string of JSON holds no line feed. */
const indented = (value: unknown, by: string): string =>
  JSON.stringify(value, null, 2).replaceAll("\n", `\n${by}`);

function* jsonSteps(document: object): Steps<string> {
  const members: string[] = [];
  for (const [name, value] of Object.entries(document)) {
    const items: string[] = [];
    if (isList(value))
      for (const item of value) {
        items.push(indented(item, "    "));
        yield;
      }
    const text = items.length > 0 ? `[\n    ${items.join(",\n    ")}\n  ]` : indented(value, "  ");
    members.push(`  ${JSON.stringify(name)}: ${text}`);
    yield;
  }
  return `{\n${members.join(",\n")}\n}\n`;
}

function* yamlSteps(document: object): Steps<string> {
  const lines: string[] = [];
  for (const [name, value] of Object.entries(document)) {
    if (!isList(value)) lines.push(yaml(name, value));
    else
      for (const [index, item] of value.entries()) {
        const text = yaml(name, [item]);
        // The name of the list stands before its first item only.
        lines.push(index === 0 ? text : text.slice(text.indexOf("\n") + 1));
        yield;
      }
    yield;
  }
  return `${lines.join("\n")}\n`;
}

const yaml = (name: string, value: unknown): string =>
  Bun.YAML.stringify({ [name]: value }, null, 2).replace(/\n$/, "");

const isList = (value: unknown): value is readonly object[] =>
  Array.isArray(value) && value.length > 0 && value.every(isDocument);
