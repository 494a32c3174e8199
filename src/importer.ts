// Entry of the thread that reads large configuration files: connects the reader to its thread; knows nothing else.
import { parseJson } from "./api/json-body.ts";
import { openTables } from "./import/foreign-tables.ts";
import { serveReader } from "./import/transfer/reader-thread.ts";
import { catalogueOf, loadPlugins } from "./pdk/catalogue.ts";
import { pluginFiles } from "./plugins/index.ts";

declare const self: Worker;

serveReader(self, {
  plugins: async () => catalogueOf(await loadPlugins(pluginFiles)),
  parseJson,
  openTables,
});
