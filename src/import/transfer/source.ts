// Parses a configuration file from JSON or YAML, with line numbers for errors. Knows no resource.
import { ApiError, invalid } from "../../model/error.ts";
import { findJsonLine } from "./json-lines.ts";
import { findYamlLine } from "./yaml-lines.ts";
import { repeatedMember } from "./yaml-repeats.ts";

/** A member name or a list index. */
export type PathStep = string | number;

export interface SourceDocument {
  readonly value: unknown;
  /** Line, from 1, of `routes[3].hosts[0]`; null without the text. */
  readonly lineOf: (path: string) => number | null;
}

/** Parses JSON and rejects ambiguous input; throws a 400. */
export type ParseJson = (text: string) => unknown;

export const documentTypes = ["json", "yaml"] as const;
export type DocumentType = (typeof documentTypes)[number];

export function readSource(text: string, type: DocumentType, parseJson: ParseJson): SourceDocument {
  const value = type === "json" ? parseJson(text) : parseYaml(text);
  return { value, lineOf: (path) => findLine(text, type, path) };
}

/** Line, from 1, of the path; the text must be valid. Null when unknown. */
export const findLine = (text: string, type: DocumentType, path: string): number | null =>
  (type === "json" ? findJsonLine : findYamlLine)(text, stepsOf(path));

/** A document without a source text. */
export const withoutLines = (value: unknown): SourceDocument => ({ value, lineOf: () => null });

/** The text of a request body; throws a 400. A byte order mark is dropped. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError(400, "the body is not valid UTF-8");
  }
}

/** The path in an error message; null when it has none, or has the line already. */
export function linePathOf(error: ApiError): string | null {
  const { path, message } = splitMessage(error.message);
  return path === "" || /\(line \d+\)$/.test(message) ? null : path;
}

/** The error with the line in its message. */
export function atLine(error: ApiError, line: number | null): ApiError {
  if (line === null) return error;
  return new ApiError(error.status, `${error.message} (line ${line})`, { cause: error });
}

/** The error with its line, where the text is available. */
export function withLine(error: ApiError, source: SourceDocument): ApiError {
  const path = linePathOf(error);
  return path === null ? error : atLine(error, source.lineOf(path));
}

/** Splits `hosts[0]: must be ...`; a message without a path stays whole. */
export function splitMessage(text: string): { readonly path: string; readonly message: string } {
  const [, path = "", message = text] = /^([A-Za-z_$][^\s:"]*): ([\s\S]*)$/.exec(text) ?? [];
  return { path, message };
}

const stepsOf = (path: string): PathStep[] =>
  [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name = ""]) =>
    index === undefined ? name : Number(index),
  );

/** Far more than any valid file needs; recursion over a deeper one could overflow the stack. */
const MAX_DEPTH = 64;
/** Finding the line of an error takes about twenty times as long as parsing the text. */
const MAX_SEARCHED_CHARACTERS = 8_388_608;

const tooDeep = () =>
  new ApiError(400, `the configuration file is nested deeper than ${MAX_DEPTH} levels`);

function parseYaml(text: string): unknown {
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (error) {
    // The parser overflows the stack on deep nesting, without a clear message.
    if (error instanceof RangeError) throw tooDeep();
    const at = text.length > MAX_SEARCHED_CHARACTERS ? null : lineOfMistake(text);
    const reason = (error as Error).message.replace(/^YAML Parse error: /, "").toLowerCase();
    throw new ApiError(
      400,
      `the configuration file is not valid YAML${at === null ? "" : ` at line ${at}`}: ${reason}`,
    );
  }
  const repeated = repeatedMember(text);
  if (repeated !== null) throw invalid(repeated.name, `is given twice (line ${repeated.line})`);
  checkValue(value, "", 0);
  return value;
}

/** The parser does not report the line: finds the first line that makes the text before it invalid. */
function lineOfMistake(text: string): number {
  const lines = text.split("\n");
  let [valid, broken] = [0, lines.length];
  while (broken - valid > 1) {
    const middle = (valid + broken) >> 1;
    if (isYaml(lines.slice(0, middle).join("\n"))) valid = middle;
    else broken = middle;
  }
  return broken;
}

function isYaml(text: string): boolean {
  try {
    Bun.YAML.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Rejects YAML values that JSON does not have. */
function checkValue(value: unknown, path: string, depth: number): void {
  if (depth > MAX_DEPTH) throw tooDeep();
  if (typeof value === "number" && !Number.isFinite(value))
    throw invalid(path, "is a number beyond what can be represented exactly");
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkValue(item, `${path}[${index}]`, depth + 1);
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    const at = path === "" ? name : `${path}.${name}`;
    // Copying a member of this name would change the prototype.
    if (name === "__proto__") throw invalid(at, "is not a known field");
    checkValue(inner, at, depth + 1);
  }
}
