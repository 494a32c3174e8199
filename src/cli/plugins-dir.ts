// The plugins directory of commands that serve nothing; knows no command.
import { join } from "node:path";
import { Type as t } from "@sinclair/typebox";
import { systemClock } from "../clock.ts";
import { createLog } from "../log.ts";
import { scopeNames } from "../model/plugin.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { PluginDirectoryView } from "../control/watched-plugins.ts";
import type { PluginDirectoryOptions } from "../plugin-directory/options.ts";
import { PluginDirectory } from "../plugin-directory/plugin-directory.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { Flag } from "./flags.ts";
import type { ServeOptions } from "./serve.ts";
import { StartError } from "./start-error.ts";

export const pluginsDirFlag: Flag = {
  name: "plugins-dir",
  value: "DIR",
  description:
    "Directory of plugins of your own (TypeScript, JavaScript); only root and the user of the gateway may be able to write to it",
};

/** Loads the plugins of `--plugins-dir` into the catalogue. Throws a StartError when the directory is not trusted. */
export async function openPlugins(
  { pluginsDir: directory, dataDir, logDir }: ServeOptions,
  parts: Pick<PluginDirectoryOptions, "url" | "catalogue" | "clock" | "log">,
): Promise<PluginDirectory> {
  const written = [dataDir, join(dataDir, "logs"), logDir ?? dataDir];
  return await PluginDirectory.open({ ...parts, directory, written }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`--plugins-dir: ${reason}`, { cause: error });
  });
}

/** All plugins, and what became of those of the directory. Throws when the directory is not trusted. */
export async function withDirectory(
  builtIn: PluginCatalogue,
  { directory, url }: { readonly directory: string; readonly url: URL },
): Promise<{ readonly plugins: PluginCatalogue; readonly view: PluginDirectoryView }> {
  const catalogue = new Map(builtIn);
  const log = createLog({ level: "error", format: "text", sink: () => {} });
  const parts = { directory, written: [], url, catalogue, clock: systemClock, log };
  const opened = await PluginDirectory.open(parts);
  return { plugins: catalogue, view: opened.view() };
}

/**
 * Knows every name, because a data directory must be repairable without the plugins directory: what it does not know has a
 * configuration of any form, and nothing is served with it.
 */
export class RepairCatalogue extends Map<string, AnyPlugin> {
  override get(name: string): AnyPlugin {
    return super.get(name) ?? { ...unknownPlugin, name };
  }
}

const unknownPlugin: AnyPlugin = {
  name: "",
  summary: "",
  description: "",
  group: "content",
  order: 0,
  phases: [],
  scopes: scopeNames,
  config: t.Object({}),
  example: {},
  onError: "closed",
  allowsMultiple: true,
  create() {
    throw new Error("the plugin is not loaded");
  },
};
