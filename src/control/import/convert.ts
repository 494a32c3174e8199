// Turns the configuration of another program into a document to import; a file for each program knows that program.
import { ApiError } from "../../model/error.ts";

/** Programs whose configuration can be carried over. */
export const importSources = ["kong", "caddy", "npm"] as const;
export type ImportSource = (typeof importSources)[number];

export interface Conversion {
  /** To be imported as it is. */
  readonly document: unknown;
  /** One sentence for each thing that could not be carried over, or not as it was. */
  readonly report: readonly string[];
}

/** Throws a 400 for bytes that are no such configuration. */
export function convert(from: ImportSource, _bytes: Uint8Array): Promise<Conversion> {
  return Promise.reject(new ApiError(400, `this version cannot read the configuration of ${from}`));
}
