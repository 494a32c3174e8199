// Decodes stored and imported objects: fills in every field that this program knows; reads no database.
import type { TObject } from "@sinclair/typebox";
import { decode } from "./decode.ts";
import type { Identity } from "./fields.ts";
import {
  type CollectionName,
  definitionOf,
  mapCollections,
  type ResourceOf,
  type SingletonName,
  type SingletonOf,
} from "./gateway-config.ts";
import { settingsInput } from "./settings.ts";
import { ssoRecord } from "./sso.ts";

/** The schemas of stored and imported objects. */
export const recordSchemas: Readonly<Record<CollectionName | SingletonName, TObject>> = {
  ...mapCollections((name) => definitionOf(name).record),
  settings: settingsInput,
  sso: ssoRecord,
};

/** Each throws a 400 with the first error of a document, `path: message`. */
export type RecordDecoders = {
  readonly [K in CollectionName]: (document: unknown) => Omit<ResourceOf[K], keyof Identity>;
} & {
  readonly [K in SingletonName]: (document: unknown) => Omit<SingletonOf[K], "updated_at">;
};

export const decodeRecord: RecordDecoders = {
  ...(mapCollections((name) => {
    const { record, normalize } = definitionOf(name);
    return (document: unknown) => normalize(decode(record, document) as never);
  }) as Pick<RecordDecoders, CollectionName>),
  settings: (document) => decode(settingsInput, document),
  sso: (document) => decode(ssoRecord, document),
};
