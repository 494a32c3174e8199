// Compares what is known of the nodes of a fleet with what was known before: one event for each transition; sends no query.
import type { NodeState, NodeTransition, NodeView } from "../control/fleet-view.ts";
import { isPresent } from "../control/node-requirement.ts";

type Known = Pick<NodeView, "id" | "name" | "state" | "error">;

/** States that end with an event of their own when the node serves again. */
const ANNOUNCED: Readonly<Partial<Record<NodeState, NodeTransition["event"]>>> = {
  away: "away",
  cut_off: "cut_off",
  outdated: "outdated",
  diverged: "diverged",
  refused: "refused",
  draining: "draining",
};

export class NodeWatch {
  #known: ReadonlyMap<string, Known> = new Map();
  /** Whether all nodes were seen once: those of the first look have not just joined. */
  #hasSeenAll = false;
  readonly #listeners: ((event: NodeTransition) => void)[] = [];

  on(listener: (event: NodeTransition) => void): void {
    this.#listeners.push(listener);
  }

  /** All nodes. */
  observe(nodes: readonly Known[]): void {
    const before = this.#known;
    this.#known = new Map(nodes.map((node) => [node.id, node]));
    for (const node of nodes) this.#compare(before.get(node.id), node);
    for (const [id, node] of before) if (!this.#known.has(id)) this.#publish("left", node);
    this.#hasSeenAll = true;
  }

  /** One node, while the others cannot be seen. */
  observeOne(node: Known): void {
    const before = this.#known.get(node.id);
    this.#known = new Map(this.#known).set(node.id, node);
    this.#compare(before, node);
  }

  /** The number of nodes, and of those that serve every change at once or in a moment. */
  counts(): { readonly live: number; readonly nodes: number } {
    const nodes = [...this.#known.values()];
    return { live: nodes.filter(isPresent).length, nodes: nodes.length };
  }

  /** Whether a node other than this one serves every change, at the last look. */
  isServedBeside(id: string): boolean {
    return this.#known
      .values()
      .some((node) => node.id !== id && (node.state === "serving" || node.state === "lagging"));
  }

  /** The number of nodes in each state, at the last look. */
  states(): ReadonlyMap<NodeState, number> {
    const counts = new Map<NodeState, number>();
    for (const { state } of this.#known.values()) counts.set(state, (counts.get(state) ?? 0) + 1);
    return counts;
  }

  #compare(before: Known | undefined, node: Known): void {
    if (before === undefined && this.#hasSeenAll) this.#publish("joined", node);
    const was = before === undefined ? undefined : ANNOUNCED[before.state];
    const is = ANNOUNCED[node.state];
    if (was !== is) this.#publish(is ?? "back", node);
  }

  #publish(event: NodeTransition["event"], { id, name, error }: Known): void {
    const why = error === "" ? null : error;
    for (const listener of this.#listeners) listener({ event, node_id: id, name, why });
  }
}
