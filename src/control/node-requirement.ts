// How many nodes of a fleet must be present for a change, and whether they are; knows no HTTP and no database.
import type { NodeState, NodeView } from "./fleet-view.ts";

export type NodeRequirement = "all" | "majority" | number;

const ABSENT: readonly NodeState[] = ["away", "cut_off", "refused", "outdated", "diverged"];

/** Whether changes can be live on a node now or in a moment. */
export const isPresent = ({ state }: Pick<NodeView, "state">): boolean => !ABSENT.includes(state);

/** Why too few nodes are present, one sentence; null: enough are. */
export function shortageOf(
  requirement: NodeRequirement,
  nodes: readonly Pick<NodeView, "name" | "state">[],
): string | null {
  const missing = nodes.filter((node) => !isPresent(node));
  const present = nodes.length - missing.length;
  if (present >= neededOf(requirement, nodes.length)) return null;
  const needs =
    typeof requirement === "number" ? String(requirement) : `${requirement} of ${nodes.length}`;
  const names = missing.map(({ name, state }) => `${name} (${state})`).join(", ");
  const lacks = names === "" ? "there are no more" : `missing: ${names}`;
  return `the change requires ${needs} nodes, and ${present} of ${nodes.length} are present; ${lacks}`;
}

function neededOf(requirement: NodeRequirement, nodes: number): number {
  if (requirement === "all") return nodes;
  return requirement === "majority" ? Math.floor(nodes / 2) + 1 : requirement;
}
