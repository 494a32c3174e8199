// All plugins of the gateway, read; for tests that look at their definitions or serve them without a worker thread.
import { loadPlugins } from "../../src/pdk/catalogue.ts";
import { pluginFiles } from "../../src/plugins/index.ts";

export const plugins = await loadPlugins(pluginFiles);
