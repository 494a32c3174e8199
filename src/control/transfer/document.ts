// A configuration as one document, whatever collections there are; knows no secret and no reader.
import { DOCUMENT_FORMAT } from "../../model/export-document.ts";
import { collectionNames, type GatewayConfig, singletonNames } from "../../model/gateway-config.ts";
import type { Part } from "../admin-parts.ts";
import type { Document } from "../body.ts";
import { canonical } from "./canonical.ts";

export interface Contents {
  /** What the document says it was written by. */
  readonly program: string;
  readonly isShown: (part: Part) => boolean;
  /** What becomes of a stored object and the secrets in it. */
  readonly convert: (object: unknown) => unknown;
}

/** Collections in the order in which they refer to one another, objects oldest first: new ones are added at the end. */
export function documentOf(
  config: GatewayConfig,
  { program, isShown, convert }: Contents,
): Document {
  const collections = collectionNames
    .filter(isShown)
    .map((name) => [name, [...config[name].values()].map((object) => canonical(convert(object)))]);
  const singletons = singletonNames
    .filter(isShown)
    .map((name) => [name, canonical(convert(config[name]))]);
  return {
    format: DOCUMENT_FORMAT,
    program,
    ...Object.fromEntries([...singletons, ...collections]),
  };
}
