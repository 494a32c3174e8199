// The flag --output: text for people, or JSON for programs; knows no result.
import { suggestion } from "../model/suggestion.ts";
import type { Flag, Flags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const formats = ["text", "json"];

export const outputFlag: Flag = {
  name: "output",
  value: "FORMAT",
  description: "text, or json: one object on standard output for programs; errors stay text",
  choices: formats,
  fallback: "text",
};

/** Prints a result as the flag says. */
export type PrintResult = (result: object, text: string) => void;

/** Throws a UsageError for another format. */
export function resultPrinter(given: Flags, print: (text: string) => void): PrintResult {
  const format = given.get("output") ?? "text";
  if (!formats.includes(format))
    throw new UsageError(
      `--output: must be text or json, not "${format}"${suggestion(format, formats)}`,
    );
  return (result, text) => print(format === "json" ? `${JSON.stringify(result)}\n` : text);
}
