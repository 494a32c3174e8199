// Use cases of the nodes of a fleet: list, forget, drain; knows neither HTTP nor a database.
import { ApiError } from "../model/error.ts";
import type { AuditSink } from "./audit-entry.ts";
import type { Changes } from "./change.ts";
import type { FleetView, NodeView } from "./fleet-view.ts";
import { type ListedNode, type NodePlugins, withPlugins } from "./node-plugins.ts";
import { isPresent } from "./node-requirement.ts";
import type { Actor } from "./principal.ts";

export interface NodesOptions {
  /** Null: there is no fleet, so there are no nodes. */
  readonly fleet: FleetView | null;
  /** Null: nodes report none. */
  readonly plugins: NodePlugins | null;
  readonly changes: Changes;
  readonly audit: AuditSink;
}

/** How long a reply waits until the node has stored that it drains, and between two looks. */
const WAIT_MS = 2000;
const LOOK_MS = 20;

export class Nodes {
  readonly #options: NodesOptions;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly ListedNode[]> {
    const { fleet, plugins } = this.#options;
    if (fleet === null) return [];
    fleet.requireConnected();
    const nodes = await fleet.nodes();
    return withPlugins(nodes, (await plugins?.read(nodes)) ?? new Map());
  }

  /** By id or name. */
  async get(key: string): Promise<ListedNode> {
    const nodes = await this.list();
    const node = nodes.find(({ id }) => id === key) ?? nodes.find(({ name }) => name === key);
    if (node === undefined) throw new ApiError(404, `node "${key}" does not exist`);
    return node;
  }

  /** Removes a node that has ended without leaving: the others do not count it any more. */
  async forget(key: string, by: Actor): Promise<ListedNode> {
    const node = await this.get(key);
    const { fleet, changes } = this.#options;
    changes.requireOpen(by);
    if (node.id === fleet?.id)
      throw new ApiError(409, `node "${node.name}" is this node; stop it, and it leaves the fleet`);
    if (isPresent(node) || (await fleet?.forget(node.id)) !== true)
      throw new ApiError(
        409,
        `node "${node.name}" is ${node.state}; stop it, and it leaves the fleet by itself`,
      );
    this.#record("forget", node, by);
    return node;
  }

  /** Whether load balancers should send no requests to a node; it serves those that come. */
  async drain(key: string, drained: boolean, by: Actor): Promise<ListedNode> {
    const node = await this.get(key);
    const { changes } = this.#options;
    changes.requireOpen(by);
    if (node.draining === drained && isPresent(node)) return node;
    const fact = { kind: "node_drained", node_id: node.id, drained } as const;
    await changes.record(() => ({ value: null, facts: [fact] }), by);
    this.#record(drained ? "drain" : "undrain", node, by);
    return await this.#drained(node.id, drained);
  }

  /** The node when it has stored it; or as it is, when it does not follow. */
  async #drained(id: string, drained: boolean): Promise<ListedNode> {
    const end = performance.now() + WAIT_MS;
    for (;;) {
      const node = await this.get(id);
      const isOver = node.draining === drained || !isPresent(node) || performance.now() > end;
      if (isOver) return node;
      await Bun.sleep(LOOK_MS);
    }
  }

  #record(action: string, { id, name }: NodeView, { actor, method, address }: Actor): void {
    this.#options.audit.record({
      actor,
      method,
      address,
      action,
      kind: "node",
      object_id: id,
      object_name: name,
      result: "ok",
      revision: null,
      detail: {},
    });
  }
}
