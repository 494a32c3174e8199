// What the management API shows of the nodes of a fleet, and asks of them; knows no database.
import type { Actor } from "./principal.ts";
import type { NodeReads } from "./node-reads.ts";
import type { NodeRequirement } from "./node-requirement.ts";

/**
 * `joining`: has not served the last change since its start; `lagging`: about to serve it; `draining`: serves, and asks load
 * balancers to send no requests; `refused`: cannot serve the next change; `outdated`: the next change is of a newer version;
 * `diverged`: the database of the fleet lacks changes that the node has; `cut_off`: does not reach the database; `away`: no sign of
 * life for some seconds; `leaving`: stops after its last requests.
 */
export const nodeStates = [
  "serving",
  "joining",
  "lagging",
  "draining",
  "refused",
  "outdated",
  "diverged",
  "cut_off",
  "away",
  "leaving",
] as const;
export type NodeState = (typeof nodeStates)[number];

export interface NodeView {
  readonly id: string;
  readonly name: string;
  /** Of its management API; null: unknown. */
  readonly url: string | null;
  readonly version: string;
  readonly state: NodeState;
  /** Whether `/readyz` tells load balancers to send no requests. */
  readonly draining: boolean;
  /** Whether it does the work that only one node does. */
  readonly leader: boolean;
  /** Position of the last change in its database. */
  readonly stored: number;
  /** Position of the last change that all its workers serve. */
  readonly served: number;
  /** Why it cannot serve the next change; empty: it can. */
  readonly error: string;
  /** Milliseconds since its last heartbeat. */
  readonly seen_ms_ago: number;
  /** Milliseconds that its clock is ahead of the database's. */
  readonly clock_offset_ms: number;
}

/** Which nodes serve a change. */
export interface Reach {
  readonly live: number;
  readonly nodes: number;
  readonly missing: readonly { readonly name: string; readonly state: NodeState }[];
}

/** What a request asks of the fleet for its changes, and what became of the last one. */
export interface FleetWrite {
  /** Checked before each commit; null: no requirement. */
  readonly requires: NodeRequirement | null;
  /** How long the reply waits for other nodes; undefined: as usual. */
  readonly waitMs: number | undefined;
  /** Set by the commit: the position in the log, and the monotonic time; null: nothing was changed. */
  committed: { readonly position: number; readonly at: number } | null;
}

/** The state of a node has changed. */
export interface NodeTransition {
  readonly event:
    | "joined"
    | "left"
    | "away"
    | "cut_off"
    | "refused"
    | "outdated"
    | "diverged"
    | "draining"
    | "back";
  readonly node_id: string;
  readonly name: string;
  /** Why it cannot serve the next change; null: it can, or no reason is known. */
  readonly why: string | null;
}

/** What this node knows without asking: public, so without addresses and reasons. */
export interface FleetStatus {
  /** Name of this node. */
  readonly node: string;
  readonly state: NodeState;
  /** RFC 3339, UTC: since when it is in this state. */
  readonly since: string;
  /** Position of the last entry of the log. */
  readonly head: number;
  readonly stored: number;
  readonly served: number;
  /** Number of nodes that serve every change at once or in a moment; null while this node is cut off. */
  readonly live: number | null;
  /** Number of nodes, as far as this one knows. */
  readonly nodes: number;
}

/** Durations since the start, in seconds, as a histogram of metrics shows them. */
export interface Durations {
  sample(): {
    readonly labels: Readonly<Record<string, string>>;
    /** Upper bounds, ascending, without infinity, and cumulative counts. */
    readonly buckets: readonly (readonly [bound: number, count: number])[];
    readonly count: number;
    readonly sum: number;
  };
}

/** Metrics of this node in its fleet. */
export interface FleetFigures {
  /** Id and name of this node. */
  readonly id: string;
  readonly name: string;
  readonly states: ReadonlyMap<NodeState, number>;
  readonly head: number;
  readonly stored: number;
  readonly served: number;
  /** How long this node has not served the last entry; 0: it serves it. */
  readonly lagSeconds: number;
  readonly append: Durations;
  /** From the append of a change until all nodes serve it. */
  readonly ack: Durations;
  readonly conflicts: number;
  readonly doubts: number;
  readonly isConnected: boolean;
  /** Whether this node does the work that only one node does. */
  readonly isLeader: boolean;
  /** How far the clock of this node is ahead of the database's; null: not measured yet. */
  readonly clockOffsetSeconds: number | null;
}

/** What keeps this node from serving the last change, and since when, in milliseconds of performance.now(); null: nothing. */
export interface Staleness {
  /** When the database of the fleet answered last. */
  readonly cutOffSince: number | null;
  /** Since when the workers do not serve the last change that is known. */
  readonly behindSince: number | null;
  /** Why this node does not follow its fleet, while another node serves all changes. */
  readonly stop: {
    readonly state: "refused" | "outdated" | "diverged";
    readonly since: number;
  } | null;
}

export interface FleetView {
  /** Id of this node. */
  readonly id: string;
  readonly name: string;
  /** Reads from the other nodes. */
  readonly reads: NodeReads;
  nodes(): Promise<readonly NodeView[]>;
  /** Announces the changes of a request: `by` is its principal. */
  expect(by: Actor, write: FleetWrite): void;
  /** Waits, but not long, until all nodes serve a change. */
  reach(committed: NonNullable<FleetWrite["committed"]>, waitMs?: number): Promise<Reach>;
  /** The same for all that this node has stored. */
  reachStored(waitMs?: number): Promise<Reach>;
  /** Throws a 503 while this node is cut off. */
  requireConnected(): void;
  /** When the database of the fleet answered last, in milliseconds of performance.now(); null: it answers. */
  cutOffSince(): number | null;
  staleness(): Staleness;
  /** Throws a 409 that names the missing nodes when fewer are present. */
  requirePresent(requirement: NodeRequirement): Promise<void>;
  /** Throws a 409 that names a node which may come back and does not have the present secret key yet: it could not read the next one. */
  requireKeyOnAll(): Promise<void>;
  /** Forgets a node without a heartbeat; false: it has one. */
  forget(id: string): Promise<boolean>;
  /** Why load balancers should send no requests to this node; null: they may. */
  notReady(): string | null;
  status(): FleetStatus;
  /** What an administrator is to know, without addresses. */
  warnings(): readonly string[];
  figures(): FleetFigures;
  /** Calls `listener` once for each change of a node's state. */
  onNodeEvent(listener: (event: NodeTransition) => void): void;
}

/** The work that only one node of the fleet does: certificates, applications, alerts, pruning. */
export interface FleetDuty {
  /** Whether it is for this node now. */
  readonly isOurs: boolean;
  /** Calls `listener` when this node has got or lost it. */
  onChange(listener: () => void): void;
}

/** Without a fleet everything is for this node. */
export const soleDuty: FleetDuty = { isOurs: true, onChange() {} };
