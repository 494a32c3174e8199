// Entry of one data-plane worker: joins the data plane to the thread it runs in; knows nothing else.
import { createDataPlane } from "./dataplane/runtime.ts";
import { runWorkerLoop } from "./dataplane/worker-loop.ts";
import { lazyPlugins } from "./pdk/catalogue.ts";
import { pluginFiles } from "./plugins/index.ts";

declare const self: Worker;

runWorkerLoop(self, createDataPlane, lazyPlugins(pluginFiles));
