// A collection whose objects have a `config` with a schema for each kind: hides, retains and seals its secrets; knows no kind.
import type { SecretBox } from "../crypto/secret-box.ts";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import { definitionOf, type ResourceOf } from "../model/gateway-config.ts";
import type { Configurable } from "../snapshot/plugin-config.ts";
import { type Document, isDocument } from "./body.ts";
import type { Changes } from "./change.ts";
import type { Draft } from "./draft.ts";
import { withIds } from "./key.ts";
import { markRemovals, refuseSealed, withoutSecrets, writeConfig } from "./plugin-config-writer.ts";
import { type FieldsOf, Resource, type WriteOptions, type Written } from "./resource.ts";

type Configured = "plugins" | "alerts" | "dns_providers";

interface ConfigWrite<K extends Configured> {
  readonly draft: Draft;
  /** Null for a new object. */
  readonly old: ResourceOf[K] | null;
  /** The configuration as clients sent it. */
  readonly sent: Document;
}

export interface ConfiguredKind<K extends Configured, V> {
  readonly collection: K;
  readonly box: SecretBox;
  /** What configures objects of this kind; throws a 400 for an unknown one. */
  readonly configurableOf: (kind: string) => Configurable;
  /** Checks and completes the fields; throws a 400. Default: nothing. */
  readonly complete?: (fields: FieldsOf<K>, write: ConfigWrite<K>) => FieldsOf<K>;
  /** The representation of an object, from its copy without secrets. Default: that copy. */
  readonly view?: (shown: ResourceOf[K], object: ResourceOf[K]) => V;
}

const withoutConfigSecrets = <T extends { readonly config: object }>(object: T): T => ({
  ...object,
  config: withoutSecrets(object.config),
});

export class ConfiguredResource<K extends Configured, V> extends Resource<K, V> {
  constructor(changes: Changes, kind: ConfiguredKind<K, V>) {
    const { collection, view = (shown: ResourceOf[K]) => shown as unknown as V } = kind;
    super(changes, {
      collection,
      decode: (document, draft, old) => ({ fields: fieldsOf(document, { ...kind, draft, old }) }),
      sendable: withoutConfigSecrets,
      viewer: () => (object) => view(withoutConfigSecrets(object), object),
    });
  }

  override patch(key: string, patch: unknown, options: WriteOptions): Promise<Written<V>> {
    const config = isDocument(patch) ? patch["config"] : undefined;
    if (!isDocument(config)) return super.patch(key, patch, options);
    return super.patch(key, { ...Object(patch), config: markRemovals(config) }, options);
  }
}

function fieldsOf<K extends Configured, V>(
  document: unknown,
  write: ConfiguredKind<K, V> & Omit<ConfigWrite<K>, "sent">,
): FieldsOf<K> {
  const { collection, box, configurableOf, complete = (fields) => fields, draft, old } = write;
  // Filling in defaults would turn a list into an object with numbers as names.
  if (isDocument(document) && Array.isArray(document["config"]))
    throw invalid("config", "must be an object");
  const { input: schema, configKind = "name" } = definitionOf(collection);
  const { config: sent, ...input } = decode(schema, document) as Document & { config: Document };
  refuseSealed(input, "");
  const before = (old ?? {}) as Document;
  const config = writeConfig(sent, {
    definition: configurableOf(String(input[configKind])),
    old: before[configKind] === input[configKind] ? (before["config"] as Document) : null,
    draft,
    box,
  });
  const fields = { ...withIds(collection, input, draft.config), config };
  return complete(fields as unknown as FieldsOf<K>, { draft, old, sent });
}
