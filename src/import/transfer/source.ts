// Parses a configuration file from JSON or YAML, with line numbers for errors. Knows no resource.
import { ApiError } from "../../model/error.ts";
import { type FindLine, linesOfJson, type PathStep } from "../../model/json-position.ts";

export interface SourceDocument {
  readonly value: unknown;
  /** Line, from 1, of `routes[3].hosts[0]`; null without the text. */
  readonly lineOf: (path: string) => Promise<number | null>;
}

/** Parses JSON and rejects ambiguous input; throws a 400. */
export type ParseJson = (text: string) => unknown;

export const documentTypes = ["json", "yaml"] as const;
export type DocumentType = (typeof documentTypes)[number];

/** Throws a 400 for an invalid text. */
export async function readSource(
  text: string,
  type: DocumentType,
  parseJson: ParseJson,
): Promise<SourceDocument> {
  const value = type === "json" ? parseJson(text) : (await yaml()).parseYaml(text);
  return { value, lineOf: linesOf(text, type) };
}

/** Finds lines in a valid text, which is read again for the first one. */
export function linesOf(text: string, type: DocumentType): (path: string) => Promise<number> {
  let find: FindLine | null = null;
  return async (path) => {
    find ??= type === "json" ? linesOfJson(text) : (await yaml()).linesOfYaml(text);
    return find(stepsOf(path));
  };
}

/** Loaded only when it is asked for. */
const yaml = () => import("./yaml.ts");

/** A document without a source text. */
export const withoutLines = (value: unknown): SourceDocument => ({
  value,
  lineOf: () => Promise.resolve(null),
});

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
export async function withLine(error: ApiError, source: SourceDocument): Promise<ApiError> {
  const path = linePathOf(error);
  return path === null ? error : atLine(error, await source.lineOf(path));
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
