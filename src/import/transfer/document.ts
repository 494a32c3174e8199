// A configuration as one document with all collections; knows no secret and no reader.
import { DOCUMENT_FORMAT } from "../../model/export-document.ts";
import type { Identity } from "../../model/fields.ts";
import { collectionNames, type GatewayConfig, singletonNames } from "../../model/gateway-config.ts";
import { finish, type Steps } from "../../pace.ts";
import type { Part } from "../../control/admin-parts.ts";
import type { Document } from "../../control/body.ts";
import { canonical } from "./canonical.ts";

export interface Contents {
  /** Value of `program`: the writer of the document. */
  readonly program: string;
  readonly isShown: (part: Part) => boolean;
  /** Converts a stored object and the secrets in it. */
  readonly convert: (object: unknown) => unknown;
}

/** What a source manages follows from it, wherever the document is read. */
const all = (objects: ReadonlyMap<string, Identity>): readonly Identity[] =>
  [...objects.values()].filter(({ managed_by }) => managed_by === undefined);

/** The same as `documentSteps`, at once. */
export const documentOf = (config: GatewayConfig, contents: Contents): Document =>
  finish(documentSteps(config, contents));

/** Collections in the order of their references, objects oldest first: new ones are at the end. */
export function* documentSteps(
  config: GatewayConfig,
  { program, isShown, convert }: Contents,
): Steps<Document> {
  const collections: [string, unknown[]][] = [];
  for (const name of collectionNames.filter(isShown)) {
    const objects: unknown[] = [];
    for (const object of all(config[name])) {
      objects.push(canonical(convert(object)));
      yield;
    }
    collections.push([name, objects]);
  }
  const singletons = singletonNames
    .filter(isShown)
    .map((name) => [name, canonical(convert(config[name]))]);
  return {
    format: DOCUMENT_FORMAT,
    program,
    ...Object.fromEntries([...singletons, ...collections]),
  };
}
