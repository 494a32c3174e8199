// Instances of plugins, and the plugins that there are; knows no plugin and no HTTP.
import type { SecretBox } from "../crypto/secret-box.ts";
import { ApiError, invalid } from "../model/error.ts";
import type { Plugin } from "../model/plugin.ts";
import { suggestion } from "../model/suggestion.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { Changes } from "./change.ts";
import { ConfiguredResource } from "./configured-resource.ts";
import type { WatchedPlugins } from "./watched-plugins.ts";
import { describePlugin, type PluginDescription } from "./plugin-description.ts";

export interface PluginsOptions {
  readonly changes: Changes;
  readonly plugins: PluginCatalogue;
  readonly box: SecretBox;
  /** Plugins that are not built in; null or absent: there are none. */
  readonly pluginDirectory?: WatchedPlugins | null;
}

export class Plugins extends ConfiguredResource<"plugins", Plugin> {
  readonly directory: WatchedPlugins | null;
  readonly #catalogue: PluginCatalogue;

  constructor({ changes, plugins, box, pluginDirectory = null }: PluginsOptions) {
    super(changes, {
      collection: "plugins",
      box,
      configurableOf: (name) => {
        const definition = plugins.get(name);
        if (definition === undefined)
          throw invalid(
            "name",
            `plugin "${name}" does not exist${suggestion(name, [...plugins.keys()])}`,
          );
        // Without its schema nothing is known of a configuration, such as what is a secret.
        if (definition.code?.isAbsent === true)
          throw invalid("name", `plugin "${name}" is not loaded: see GET /plugins/directory`);
        return definition;
      },
    });
    this.#catalogue = plugins;
    this.directory = pluginDirectory;
  }

  /** All plugins, by name. */
  descriptions(): readonly PluginDescription[] {
    return [...this.#catalogue.values()]
      .filter(({ code }) => code?.isAbsent !== true)
      .map(describePlugin)
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** Throws a 404 for an unknown name. */
  description(name: string): PluginDescription {
    const definition = this.#catalogue.get(name);
    if (definition === undefined || definition.code?.isAbsent === true)
      throw new ApiError(404, `plugin "${name}" does not exist`);
    return describePlugin(definition);
  }
}
