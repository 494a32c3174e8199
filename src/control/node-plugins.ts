// Which plugins of their directories the nodes of a fleet serve, and where nodes differ; asks nothing itself.
import type { NodeView } from "./fleet-view.ts";

/** A plugin that a node serves from its directory. */
export interface NodePlugin {
  readonly name: string;
  /** SHA-256 of its code, hexadecimal. */
  readonly hash: string;
}

export type ReportingNode = Pick<NodeView, "id" | "version">;

/** What nodes have reported. */
export interface NodePlugins {
  /** By id of the node; absent: it reports none, or is not known. */
  read(nodes: readonly ReportingNode[]): Promise<ReadonlyMap<string, readonly NodePlugin[]>>;
}

/** A node as the management API shows it. */
export interface ListedNode extends NodeView {
  /** By name; null: unknown, as of a version that does not report them. */
  readonly plugins: readonly NodePlugin[] | null;
  /** Where it differs from other nodes, one clause each. */
  readonly warnings: readonly string[];
}

/** Other nodes that a warning names; further ones are counted. */
const NAMED_NODES = 3;

/** Nodes that run and report, each with its plugins by name. */
type Reporting = readonly {
  readonly name: string;
  readonly hashes: ReadonlyMap<string, string>;
}[];

/** Of a node that is away or stops nothing is compared: it serves no clients, and may come back with other files. */
export function withPlugins(
  nodes: readonly NodeView[],
  reported: ReadonlyMap<string, readonly NodePlugin[]>,
): readonly ListedNode[] {
  const isRunning = ({ state }: NodeView) => state !== "away" && state !== "leaving";
  const reporting = nodes.filter(isRunning).flatMap(({ id, name }) => {
    const plugins = reported.get(id);
    const hashes = new Map(plugins?.map((plugin) => [plugin.name, plugin.hash]));
    return plugins === undefined ? [] : [{ name, hashes }];
  });
  return nodes.map((node) => ({
    ...node,
    plugins: reported.get(node.id) ?? null,
    warnings: warningsOf(node.name, reporting),
  }));
}

function warningsOf(node: string, reporting: Reporting): string[] {
  const own = reporting.find(({ name }) => name === node)?.hashes;
  if (own === undefined) return [];
  const plugins = new Set(reporting.flatMap(({ hashes }) => [...hashes.keys()]));
  return [...plugins].toSorted().flatMap((plugin) => {
    const hash = own.get(plugin);
    const others = reporting
      .filter(({ hashes }) => hashes.has(plugin) && hashes.get(plugin) !== hash)
      .map(({ name }) => name);
    if (others.length === 0) return [];
    const names = listOf(others);
    return hash === undefined
      ? [`lacks plugin "${plugin}" of ${names}`]
      : [`plugin "${plugin}" has other code than on ${names}`];
  });
}

function listOf(names: readonly string[]): string {
  const further = names.length - NAMED_NODES;
  const named = names.slice(0, NAMED_NODES).join(", ");
  return further > 0 ? `${named} and ${further} more` : named;
}
