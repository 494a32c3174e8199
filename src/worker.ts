// Entry point of a data-plane worker thread; knows nothing else.
import { createDataPlane } from "./dataplane/runtime.ts";
import { runWorkerLoop } from "./dataplane/worker-loop.ts";
import { lazyPlugins } from "./pdk/catalogue.ts";
import { pluginFiles } from "./plugins/index.ts";

declare const self: Worker;

runWorkerLoop(self, createDataPlane, lazyPlugins(pluginFiles));
