// The fleet as one of its nodes sees it: which nodes there are, and which of them serve a change.
import type { Clock } from "../clock.ts";
import { OlderNodes } from "../control/change-contract.ts";
import type {
  FleetFigures,
  FleetStatus,
  FleetView,
  FleetWrite,
  NodeState,
  NodeTransition,
  NodeView,
  Reach,
  Staleness,
} from "../control/fleet-view.ts";
import { isPresent, type NodeRequirement, shortageOf } from "../control/node-requirement.ts";
import type { Actor } from "../control/principal.ts";
import { ApiError } from "../model/error.ts";
import type { EntryCodec } from "./entry.ts";
import type { FormatNeed } from "./entry-format.ts";
import type { Follower } from "./follower.ts";
import type { FleetTimes } from "./times.ts";
import type { FleetMeter } from "./meter.ts";
import type { Lease } from "./lease.ts";
import { forgedRow, isOlder, isSigned } from "./node-row.ts";
import { NodeTokens } from "./node-token.ts";
import { NodeWatch } from "./node-watch.ts";
import { type Peer, PeerReads } from "./peer-reads.ts";
import { SharedLook } from "./shared-look.ts";
import type { FleetNode, FleetSource } from "./source.ts";

export interface FleetOptions {
  readonly follower: Follower;
  readonly source: Pick<FleetSource, "nodes" | "forgetAway">;
  readonly codec: EntryCodec;
  /** Id of this node. */
  readonly id: string;
  readonly name: string;
  readonly clock: Clock;
  readonly times: FleetTimes;
  readonly meter: FleetMeter;
  /** Whether this node asks load balancers to send no requests; from its database. */
  readonly isDrained: () => boolean;
  readonly lease: Pick<Lease, "isOurs">;
  /** Derived from the secret key, for tokens of nodes. */
  readonly tokenKey: () => string;
  /** Position of the entry that brought the present secret key; 0: none did. */
  readonly keyPosition: () => Promise<number>;
  /** Milliseconds after which a node that is away no longer limits what the others may write. */
  readonly absentMs: () => number;
}

/** Between two looks at all nodes for events and metrics. */
const WATCH_MS = 1000;

/** The positions of a node that has diverged are those of another history. */
const serves = ({ state, served }: NodeView, position: number): boolean =>
  state !== "diverged" && served >= position;

export class Fleet implements FleetView {
  readonly reads: PeerReads;
  readonly #options: FleetOptions;
  readonly #watch = new NodeWatch();
  readonly #writes = new WeakMap<Actor, FleetWrite>();
  /** Number of looks at the nodes, and of the newest one that was compared: they may end in another order. */
  #looks = 0;
  #compared = 0;
  /** For all that wait, so that they do not crowd out heartbeats. */
  readonly #shared = new SharedLook(() => this.nodes());
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Of the last look, so that reads need no database; null: none yet. */
  #peers: readonly Peer[] | null = null;
  /** The state of this node, and since when by the clock. */
  #present: { readonly state: NodeState; readonly at: number };

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#present = { state: "joining", at: options.clock.now() };
    options.follower.onBeat(() => this.#look());
    const { id, tokenKey: key, clock, follower } = options;
    const now = () => clock.now() - (follower.clockOffsetMs ?? 0);
    const tokens = new NodeTokens({ key, id, now });
    this.reads = new PeerReads({ id, tokens, peers: () => this.#peers });
  }

  get id(): string {
    return this.#options.id;
  }

  get name(): string {
    return this.#options.name;
  }

  requireConnected(): void {
    this.#options.follower.requireConnected();
  }

  cutOffSince(): number | null {
    return this.#options.follower.cutOffSince();
  }

  staleness(): Staleness {
    const { follower, id } = this.#options;
    return {
      cutOffSince: follower.cutOffSince(),
      behindSince: follower.behindSince,
      stop: this.#watch.isServedBeside(id) ? follower.stop : null,
    };
  }

  expect(by: Actor, write: FleetWrite): void {
    this.#writes.set(by, write);
  }

  /** What the request of this principal expects of its changes. */
  expected(by: Actor): FleetWrite | null {
    return this.#writes.get(by) ?? null;
  }

  async requirePresent(requirement: NodeRequirement): Promise<void> {
    this.requireConnected();
    const shortage = shortageOf(requirement, await this.nodes());
    if (shortage !== null) throw new ApiError(409, `${shortage}; nothing was changed`);
  }

  async requireKeyOnAll(): Promise<void> {
    const { source, keyPosition, absentMs } = this.#options;
    const position = await keyPosition();
    const lacking = (await source.nodes()).filter(
      ({ stored, seenMsAgo }) => stored < position && seenMsAgo <= absentMs(),
    );
    if (lacking.length === 0) return;
    const names = lacking.map(({ name }) => name).join(", ");
    throw new ApiError(
      409,
      `node ${names} does not have the present secret key yet, and could not follow to another one; start it, or forget it with DELETE /api/v1/nodes/{id}; nothing was changed`,
    );
  }

  /** Throws an OlderNodes that names the nodes which could not read an entry: those that follow now, or may come back soon. */
  async requireReadable({ format, because }: FormatNeed): Promise<void> {
    const { source, codec, absentMs } = this.#options;
    const limits = { format, absentMs: absentMs() };
    const older = (await source.nodes()).filter(
      (node) => isOlder(node, limits) && isSigned(codec, node),
    );
    if (older.length > 0) throw new OlderNodes(because, older);
  }

  async forget(id: string): Promise<boolean> {
    const { source, times } = this.#options;
    return await source.forgetAway(id, times.away);
  }

  notReady(): string | null {
    if (this.#options.isDrained()) return "draining: this node is to get no more requests";
    const { follower } = this.#options;
    if (follower.rivalry.error !== null)
      return "refused: another process speaks for this node in its fleet";
    return follower.state === "joining"
      ? "joining: this node does not serve the last change yet"
      : null;
  }

  warnings(): readonly string[] {
    const { warning } = this.#options.follower.rivalry;
    return warning === null ? [] : [warning];
  }

  onNodeEvent(listener: (event: NodeTransition) => void): void {
    this.#watch.on(listener);
  }

  status(): FleetStatus {
    const { name: node, follower } = this.#options;
    const { state, at } = this.#noteState();
    const { live, nodes } = this.#watch.counts();
    const { head, stored, served } = follower;
    const since = new Date(at).toISOString();
    return {
      node,
      state,
      since,
      head,
      stored,
      served,
      live: follower.isCutOff ? null : live,
      nodes,
    };
  }

  figures(): FleetFigures {
    const { meter, follower, lease } = this.#options;
    const { head, stored, served, isConnected, lagMs, clockOffsetMs } = follower;
    return {
      id: this.id,
      name: this.name,
      states: this.#watch.states(),
      head,
      stored,
      served,
      isConnected,
      lagSeconds: lagMs / 1000,
      append: meter.append,
      ack: meter.ack,
      conflicts: meter.conflicts,
      doubts: meter.doubts,
      isLeader: lease.isOurs,
      clockOffsetSeconds: clockOffsetMs === null ? null : clockOffsetMs / 1000,
    };
  }

  /** Waits until all nodes serve a change from which that can be expected, or `wait` has passed. */
  async reach(
    { position, at }: NonNullable<FleetWrite["committed"]>,
    waitMs = this.#options.times.wait,
  ): Promise<Reach> {
    const end = performance.now() + waitMs;
    for (let nodes = await this.#shared.first(); ; nodes = await this.#shared.next()) {
      const missing = nodes.filter((node) => !serves(node, position));
      if (missing.length === 0) this.#options.meter.ack.observe(performance.now() - at);
      if (!missing.some(isPresent) || performance.now() >= end)
        return { live: nodes.length - missing.length, nodes: nodes.length, missing };
    }
  }

  async reachStored(waitMs?: number): Promise<Reach> {
    const position = this.#options.follower.applied;
    return await this.reach({ position, at: performance.now() }, waitMs);
  }

  /** All nodes with their states; this one by its own knowledge. */
  async nodes(): Promise<readonly NodeView[]> {
    const look = ++this.#looks;
    const nodes = await this.#options.source.nodes();
    const views = nodes.map((node) => this.#viewOf(node));
    if (look > this.#compared) {
      this.#compared = look;
      this.#peers = nodes.map((node) => this.#peerOf(node));
      this.#watch.observe(views);
    }
    return views;
  }

  #peerOf(node: FleetNode): Peer {
    const { id, name, url } = node;
    return { id, name, url, isSigned: isSigned(this.#options.codec, node) };
  }

  #viewOf(node: FleetNode): NodeView {
    const { codec, follower, isDrained } = this.#options;
    const { id, name, url, version, seenMsAgo, draining, leads, clockOffsetMs } = node;
    const known = {
      id,
      name,
      version,
      draining,
      leader: leads,
      url: url === "" ? null : withoutCertificate(url),
      seen_ms_ago: Math.round(seenMsAgo),
      clock_offset_ms: clockOffsetMs,
    };
    if (id === this.id) {
      const { state, error, stored, served } = follower;
      return { ...known, state, error, stored, served, draining: isDrained() };
    }
    if (!isSigned(codec, node)) return { ...known, ...this.#unverified(node) };
    const { stored, served, error } = node;
    return { ...known, stored, served, error, state: this.#stateOf(node) };
  }

  /** A node that is ahead may have a new secret key, which this one gets with the entries up to there. */
  #unverified({ stored, seenMsAgo, head }: FleetNode) {
    const nothing = { url: null, stored: 0, served: 0 };
    if (seenMsAgo > this.#options.times.away)
      return { ...nothing, state: "away", error: forgedRow } as const;
    if (stored <= head && stored > this.#options.follower.applied)
      return { ...nothing, state: "lagging", error: "" } as const;
    return { ...nothing, state: "refused", error: forgedRow } as const;
  }

  #stateOf({ seenMsAgo, state, served }: FleetNode): NodeState {
    if (seenMsAgo > this.#options.times.away) return "away";
    if (state !== "serving" && state !== "lagging") return state as NodeState;
    return served < this.#options.follower.head ? "lagging" : "serving";
  }

  #noteState(): { readonly state: NodeState; readonly at: number } {
    const { follower, clock } = this.#options;
    const { state } = follower;
    if (state !== this.#present.state) this.#present = { state, at: clock.now() };
    return this.#present;
  }

  /** Looks at all nodes from time to time. */
  #look(): void {
    const { follower, id, name } = this.#options;
    const { state } = this.#noteState();
    if (follower.isCutOff)
      return this.#watch.observeOne({ id, name, state, error: follower.error });
    const now = performance.now();
    if (now - this.#lookedAt < WATCH_MS) return;
    this.#lookedAt = now;
    this.nodes().catch(() => undefined);
  }
}

/** The fragment is a self-signed certificate, for other nodes. */
const withoutCertificate = (url: string) => url.replace(/#.*/, "");
