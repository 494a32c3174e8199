// What the gateway knows of a plugin of the directory, and how the management API shows it; reads nothing.
import type { AnyPlugin } from "../pdk/definition.ts";
import type { PluginProblem } from "./bundle.ts";

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
  readonly problem: PluginProblem | null;
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

/** What the gateway knows of one file. */
export interface Known {
  readonly name: string;
  readonly number: number;
  file: string;
  /** Of the files that were read last, and of those seen at the last look. */
  readMark: string;
  seenMark: string;
  inputs: readonly string[];
  definition: AnyPlugin | null;
  loadedAt: string | null;
  reloads: number;
  blocked: number;
  problem: PluginProblem | null;
  isRemoved: boolean;
}

export const unread = (name: string, number: number): Known => ({
  name,
  number,
  file: "",
  readMark: "",
  seenMark: "",
  inputs: [],
  definition: null,
  loadedAt: null,
  reloads: 0,
  blocked: 0,
  problem: null,
  isRemoved: false,
});

/** As the management API shows it. */
export function viewOf(known: Known): PluginFileView {
  const { name, file, definition, loadedAt, reloads, blocked, problem: found } = known;
  const code = definition?.code;
  return {
    name,
    file,
    state: stateOf(known),
    hash: code?.hash ?? null,
    loaded_at: loadedAt,
    reloads,
    blocked,
    problem: found,
  };
}

function stateOf({ definition, isRemoved }: Known): PluginState {
  if (definition === null) return "refused";
  if (definition.code?.disabled !== null) return "disabled";
  return isRemoved ? "removed" : "loaded";
}
