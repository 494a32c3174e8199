// What the plugins directory needs of the rest of the gateway; has no logic.
import type { Clock } from "../clock.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import type { Log } from "../log.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { ReloadLimit } from "./reload-count.ts";

export interface PluginDirectoryOptions {
  /** `--plugins-dir`, which precedes the setting; null: absent. */
  readonly directory: string | null;
  /** Where the gateway itself writes what others send: the directory must be apart from it. */
  readonly written: readonly string[];
  /** Entry of the thread that reads plugins. */
  readonly url: URL;
  /** All plugins: has the built-in ones, and gets those of the directory. */
  readonly catalogue: Map<string, AnyPlugin>;
  readonly clock: Clock;
  readonly log: Log;
}

/** What it gets once the control plane exists. */
export interface Attached {
  readonly changes: Changes;
  readonly audit: AuditSink;
  readonly observation: { countPlugin(name: string): void };
  readonly renewWorkers: ReloadLimit["renewWorkers"];
}
