// All plugins of the gateway, loaded; for tests that check their definitions or run them without a worker thread.
import { loadPlugins } from "../../src/pdk/catalogue.ts";
import { pluginFiles } from "../../src/plugins/index.ts";

export const plugins = await loadPlugins(pluginFiles);
