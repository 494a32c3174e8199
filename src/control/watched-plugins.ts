// Where plugins that are not built in come from, as the control plane and the management API see it; knows no file.

/** Why a plugin cannot be loaded. */
export interface LoadProblem {
  /** `read`, `bundle`, `import` or `definition`, and for one that has run its phase. */
  readonly phase: string;
  readonly message: string;
  /** Relative to the directory; null: unknown. */
  readonly file: string | null;
  /** From 1; null: unknown. */
  readonly line: number | null;
}

/** `loaded`: served; `refused`: never loaded; `disabled`: blocked workers; `removed`: served although its file is gone. */
export type PluginState = "loaded" | "refused" | "disabled" | "removed";

/** A plugin of the directory, as the management API shows it. */
export interface PluginFileView {
  readonly name: string;
  /** Relative to the directory. */
  readonly file: string;
  readonly state: PluginState;
  /** SHA-256 of what is served; null: nothing is. */
  readonly hash: string | null;
  /** RFC 3339; null: never. */
  readonly loaded_at: string | null;
  /** How often its code was replaced. */
  readonly reloads: number;
  /** How often a worker was replaced that hung in the code that is served. */
  readonly blocked: number;
  /** Why the file is not served as it is; null: it is. */
  readonly problem: LoadProblem | null;
}

export interface PluginDirectoryView {
  /** Null: there is none. */
  readonly directory: string | null;
  /** `flag`: of `--plugins-dir`. */
  readonly source: "flag" | "setting";
  readonly reloads: number;
  /** Since the workers were replaced because of reloads, and how often they were. */
  readonly reloads_since_replacement: number;
  readonly worker_replacements: number;
  readonly plugins: readonly PluginFileView[];
  /** About the directory as a whole. */
  readonly problems: readonly string[];
}

/** The directory of plugins. */
export interface WatchedPlugins {
  /** Follows the files from now on. */
  start(): void;
  stop(): Promise<void>;
  /** Looks for changed files; `isNow`: without waiting until they rest. Resolves when all is served or refused. */
  look(isNow?: boolean): Promise<void>;
  view(): PluginDirectoryView;
  /** What an operator should know, a sentence each. */
  warnings(): readonly string[];
}
