// Instances of plugins: their scopes and configurations; knows no plugin and no HTTP.
import type { SecretBox } from "../crypto/secret-box.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { type Plugin, pluginInput } from "../model/plugin.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { isDocument } from "./body.ts";
import type { Changes } from "./change.ts";
import type { Draft } from "./draft.ts";
import { withIds } from "./key.ts";
import { describePlugin, type PluginDescription } from "./plugin-description.ts";
import { markRemovals, refuseSealed, withoutSecrets, writeConfig } from "./plugin-config-writer.ts";
import {
  type FieldsOf,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "./resource.ts";

export interface PluginsOptions {
  readonly changes: Changes;
  readonly plugins: PluginCatalogue;
  readonly box: SecretBox;
}

export class Plugins extends Resource<"plugins", Plugin> {
  readonly #catalogue: PluginCatalogue;

  constructor(options: PluginsOptions) {
    super(options.changes, kindOf(options));
    this.#catalogue = options.plugins;
  }

  /** All plugins, by name. */
  descriptions(): readonly PluginDescription[] {
    return [...this.#catalogue.values()]
      .map(describePlugin)
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** Throws a 404 for an unknown name. */
  description(name: string): PluginDescription {
    const definition = this.#catalogue.get(name);
    if (definition === undefined) throw new ApiError(404, `plugin "${name}" does not exist`);
    return describePlugin(definition);
  }

  override patch(key: string, patch: unknown, options: WriteOptions): Promise<Written<Plugin>> {
    const config = isDocument(patch) ? patch["config"] : undefined;
    if (!isDocument(config)) return super.patch(key, patch, options);
    return super.patch(key, { ...Object(patch), config: markRemovals(config) }, options);
  }
}

/** The representation, without secrets. */
const view = (plugin: Plugin): Plugin => ({
  ...plugin,
  config: withoutSecrets(plugin.config) as Plugin["config"],
});

const kindOf = (options: PluginsOptions): ResourceKind<"plugins", Plugin> => ({
  collection: "plugins",
  decode: (document, draft, old) => ({ fields: fieldsOf(document, { draft, old, ...options }) }),
  sendable: view,
  viewer: () => view,
});

interface WriteContext extends PluginsOptions {
  readonly draft: Draft;
  readonly old: Plugin | null;
}

function fieldsOf(
  document: unknown,
  { draft, old, plugins, box }: WriteContext,
): FieldsOf<"plugins"> {
  // Filling in defaults would turn a list into an object with numbers as names.
  if (isDocument(document) && Array.isArray(document["config"]))
    throw invalid("config", "must be an object");
  const { config: sent, ...input } = decode(pluginInput, document);
  refuseSealed(input, "");
  const definition = plugins.get(input.name);
  if (definition === undefined) throw invalid("name", `plugin "${input.name}" does not exist`);
  const config = writeConfig(sent, {
    definition,
    old: old?.name === input.name ? old.config : null,
    draft,
    box,
  });
  return { ...withIds("plugins", input, draft.config), config };
}
