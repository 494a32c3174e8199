// What the management API shows of the nodes of a fleet; knows no database.

/**
 * `joining`: has started, and does not serve all changes yet; `lagging`: about to serve the last change; `refused`: cannot serve it;
 * `outdated`: it is of a newer version; `diverged`: the database of the fleet lacks changes that the node has; `cut_off`: does not
 * reach the database; `away`: no sign of life for some seconds.
 */
export const nodeStates = [
  "joining",
  "serving",
  "lagging",
  "refused",
  "outdated",
  "diverged",
  "cut_off",
  "away",
] as const;
export type NodeState = (typeof nodeStates)[number];

export interface NodeView {
  readonly id: string;
  readonly name: string;
  /** Of its management API; null: unknown. */
  readonly url: string | null;
  readonly version: string;
  readonly state: NodeState;
  /** Position of the last change in its database. */
  readonly stored: number;
  /** Position of the last change that all its workers serve. */
  readonly served: number;
  /** Why it cannot serve the next change; empty: it can. */
  readonly error: string;
  /** Milliseconds since its last heartbeat. */
  readonly seen_ms_ago: number;
}

/** Which nodes serve a change. */
export interface Reach {
  readonly live: number;
  readonly nodes: number;
  readonly missing: readonly { readonly name: string; readonly state: NodeState }[];
}

export interface FleetView {
  /** Id of this node. */
  readonly id: string;
  readonly name: string;
  nodes(): Promise<readonly NodeView[]>;
  /** Waits, but not long, until all nodes serve what this one has stored. */
  reach(waitMs?: number): Promise<Reach>;
  /** Throws a 503 while this node is cut off. */
  requireConnected(): void;
  /** When the database of the fleet answered last, in milliseconds of performance.now(); null: it answers. */
  cutOffSince(): number | null;
}

/** The work that only one node of the fleet does. */
export interface FleetDuty {
  /** Whether it is for this node. */
  readonly isOurs: boolean;
  /** Calls `listener` when this node has got or lost it. */
  onChange(listener: () => void): void;
}

/** Without a fleet everything is for this node. */
export const soleDuty: FleetDuty = { isOurs: true, onChange() {} };
