// Parses a configuration file from JSON or YAML, with line numbers for errors. Knows no resource.
import { ApiError } from "../../model/error.ts";
import {
  type FindPosition,
  type PathStep,
  type Position,
  positionsInJson,
} from "../../model/json-position.ts";

export interface SourceDocument {
  readonly value: unknown;
  /** Where `routes[3].hosts[0]` stands; null without the text. */
  readonly positionOf: (path: string) => Promise<Position | null>;
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
  return { value, positionOf: positionsIn(text, type) };
}

/** Finds positions in a valid text, which is read again for the first one. */
export function positionsIn(text: string, type: DocumentType): (path: string) => Promise<Position> {
  let find: FindPosition | null = null;
  return async (path) => {
    find ??= type === "json" ? positionsInJson(text) : (await yaml()).positionsInYaml(text);
    return find(stepsOf(path));
  };
}

/** Loaded only when it is asked for. */
const yaml = () => import("./yaml.ts");

/** A document without a source text. */
export const withoutText = (value: unknown): SourceDocument => ({
  value,
  positionOf: () => Promise.resolve(null),
});

/** The text of a request body; throws a 400. A byte order mark is dropped. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError(400, "the body is not valid UTF-8");
  }
}

/** The path in an error message; null when it has none, or has the position already. */
export function pathIn(error: ApiError): string | null {
  const { path, message } = splitMessage(error.message);
  return path === "" || /\(line \d+(?:, column \d+)?\)$/.test(message) ? null : path;
}

/** The error with the position in its message. */
export function atPosition(error: ApiError, position: Position | null): ApiError {
  if (position === null) return error;
  const { line, column } = position;
  const message = `${error.message} (line ${line}, column ${column})`;
  return new ApiError(error.status, message, { cause: error });
}

/** The error with its position, where the text is available. */
export async function withPosition(error: ApiError, source: SourceDocument): Promise<ApiError> {
  const path = pathIn(error);
  return path === null ? error : atPosition(error, await source.positionOf(path));
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
