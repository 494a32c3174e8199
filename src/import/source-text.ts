// Reads bytes as one JSON or YAML document and adds the position to errors; knows no program.
import { ApiError } from "../model/error.ts";
import {
  type ParseJson,
  readSource,
  type SourceDocument,
  withPosition,
} from "./transfer/source.ts";

/** Throws a 400 for anything else. */
export function readText(bytes: Uint8Array, parseJson: ParseJson): Promise<SourceDocument> {
  const text = decodeSource(bytes);
  return readSource(text, /^\s*[{[]/.test(text) ? "json" : "yaml", parseJson);
}

/** Throws a 400 for bytes that are no text. */
export function decodeSource(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError(400, "the file is not valid UTF-8 text");
  }
}

/** Runs `read` with the document and adds the position to its errors. */
export async function locateErrors(
  source: SourceDocument,
  read: (value: unknown) => Promise<void> | void,
): Promise<void> {
  try {
    await read(source.value);
  } catch (error) {
    throw error instanceof ApiError ? await withPosition(error, source) : error;
  }
}

/** Runs `read` and puts the path of the file in front of its errors. */
export async function inFile<T>(path: string, read: () => Promise<T> | T): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.status, `${path}: ${error.message}`, { cause: error });
  }
}
