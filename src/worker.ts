// Entry point of a data-plane worker thread; knows nothing else.
import { surviveStrayErrors } from "./dataplane/plugin/stray-errors.ts";
import { createDataPlane } from "./dataplane/runtime.ts";
import { runWorkerLoop } from "./dataplane/worker-loop.ts";
import { lazyPlugins } from "./pdk/catalogue.ts";
import { pluginFiles } from "./plugins/index.ts";
import type { WorkerEvent } from "./snapshot/message.ts";

declare const self: Worker;

const plugins = lazyPlugins(pluginFiles, () =>
  surviveStrayErrors((level, message, fields = {}) =>
    self.postMessage({ kind: "log", level, message, fields } satisfies WorkerEvent),
  ),
);

runWorkerLoop(self, createDataPlane, plugins);
