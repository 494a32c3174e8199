// What the gateway knows of a plugin of the directory, and how the management API shows it; reads nothing.
import { local } from "../control/principal.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { PluginCode } from "../pdk/definition.ts";
import type {
  LoadProblem,
  PluginDirectoryView,
  PluginFileView,
  PluginState,
} from "../control/watched-plugins.ts";

/** What the gateway knows of one file. */
export interface Known {
  readonly name: string;
  readonly number: number;
  /** The directory that it was last seen in. */
  directory: string;
  file: string;
  /** Of the files that were read last, and of those seen at the last look. */
  readMark: string;
  seenMark: string;
  inputs: readonly string[];
  definition: AnyPlugin | null;
  loadedAt: string | null;
  reloads: number;
  blocked: number;
  problem: LoadProblem | null;
  isRemoved: boolean;
  /** Ids of instances that could not be created at the start: they reject until a change creates them. */
  readonly refusedInstances: Set<string>;
}

export const unread = (name: string, number: number): Known => ({
  name,
  number,
  directory: "",
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
  refusedInstances: new Set(),
});

/** As the management API shows it. */
function viewOf(known: Known): PluginFileView {
  const { name, file, loadedAt, reloads, blocked, problem: found } = known;
  return {
    name,
    file,
    state: stateOf(known),
    hash: servedCode(known)?.hash ?? null,
    loaded_at: loadedAt,
    reloads,
    blocked,
    problem: found,
  };
}

export function directoryView(
  all: Iterable<Known>,
  directory: Omit<PluginDirectoryView, "plugins" | "reloads">,
): PluginDirectoryView {
  const plugins = [...all].map(viewOf);
  return {
    ...directory,
    reloads: plugins.reduce((sum, { reloads }) => sum + reloads, 0),
    plugins: plugins.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
  };
}

/** For the status, which everyone may read: without names. */
export function warningsOf({ plugins, problems }: PluginDirectoryView): readonly string[] {
  const failing = plugins.filter(({ problem }) => problem !== null).length + problems.length;
  return failing === 0 ? [] : [`${failing} of the plugins directory not served: see Plugins`];
}

/** Null: none of its code is served. */
export function servedCode({ definition }: Pick<Known, "definition">): PluginCode | null {
  const code = definition?.code ?? null;
  return code === null || code.isAbsent === true ? null : code;
}

function stateOf(known: Known): PluginState {
  const code = servedCode(known);
  if (code === null) return "refused";
  if (code.disabled !== null) return "disabled";
  return known.isRemoved ? "removed" : "loaded";
}

/** What became of its code. */
export function auditEntryOf(known: Known) {
  const { name, file, reloads } = known;
  const { hash = null, disabled = null } = servedCode(known) ?? {};
  return {
    actor: local.actor,
    method: local.method,
    address: "",
    action: hash === null ? "unload" : disabled === null ? "load" : "disable",
    kind: "plugin_file",
    object_id: null,
    object_name: name,
    result: "ok",
    revision: null,
    detail: { file, sha256: hash, reloads },
  } as const;
}

/** Instances have changed: what was refused because of them may be served now. */
export function noteChanged(all: Iterable<Known>, instances: readonly string[]): void {
  for (const known of all) {
    const { refusedInstances } = known;
    const had = refusedInstances.size;
    for (const id of instances) refusedInstances.delete(id);
    if (known.problem?.phase === "serve" || (had > 0 && refusedInstances.size === 0))
      known.readMark = "";
  }
}
