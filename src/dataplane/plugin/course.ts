// How far a request has come among the plugins of its route; knows no request.
import type { PluginRuntime } from "./plugin-set.ts";

/** Made when the first plugin runs. */
export class Course {
  /** Where the handler that was called last stands. */
  phase = 0;
  step = 0;
  running: PluginRuntime | null = null;
  /** Plugins with a place above this do not see the answer. */
  innermost = Number.POSITIVE_INFINITY;
  /** Those that a copy was led through: no others hear of its end. Null: no copy. */
  called: Set<PluginRuntime> | null = null;
}
