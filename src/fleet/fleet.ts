// A node's membership in a fleet: follows the log, reports how far it is, and counts which nodes serve a change.
import type { Changes } from "../control/change.ts";
import type { Clock } from "../clock.ts";
import type {
  FleetFigures,
  FleetStatus,
  FleetView,
  FleetWrite,
  NodeState,
  NodeTransition,
  NodeView,
  Reach,
} from "../control/fleet-view.ts";
import { type NodeRequirement, shortageOf } from "../control/node-requirement.ts";
import type { Actor } from "../control/principal.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import { ClockOffset } from "./clock-offset.ts";
import { ENTRY_FORMAT } from "./entry.ts";
import type { FleetMeter } from "./meter.ts";
import { NodeWatch } from "./node-watch.ts";
import type { FleetNode, PostgresSource } from "./postgres-source.ts";

/** Times in milliseconds. */
export interface FleetTimes {
  /** Between two heartbeats. Default 500. */
  readonly beat: number;
  /** After this time without a heartbeat a node counts as away: changes do not wait for it. Default 5000. */
  readonly away: number;
  /** A change waits so long for the other nodes. Default 2000. */
  readonly wait: number;
}

export const defaultTimes: FleetTimes = { beat: 500, away: 5000, wait: 2000 };

export interface FleetOptions {
  readonly source: PostgresSource;
  /** Position of the last entry in this node's database. */
  readonly stored: () => number;
  /** Id of this node. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly times: FleetTimes;
  readonly meter: FleetMeter;
  /** Whether this node asks load balancers to send no requests; from its database. */
  readonly isDrained: () => boolean;
}

/** A lost heartbeat may be chance; after two the connections are made anew. */
const MISSED_BEATS = 2;

/** First pause between two looks at the other nodes; doubles up to the last. */
const LOOK_MS = 2;
const MAX_LOOK_MS = 50;

/** Between two looks at all nodes for events and metrics. */
const WATCH_MS = 1000;

export class Fleet implements FleetView {
  readonly #options: FleetOptions;
  #changes: Changes | null = null;
  #served = 0;
  #head = 0;
  #missedBeats = 0;
  #isListening = false;
  /** Why the next entry cannot be served; empty: it can. */
  #error = "";
  #beating: Promise<void> | null = null;
  #wantsBeat = false;
  #timer: Timer | null = null;
  #isEnded = false;
  readonly #watch = new NodeWatch();
  readonly #offset: ClockOffset;
  readonly #writes = new WeakMap<Actor, FleetWrite>();
  /** Number of looks at the nodes, and of the newest one that was compared: they may end in another order. */
  #looks = 0;
  #compared = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Whether the workers have served the head since the start. */
  #hasServedHead = false;
  /** The state of this node, and since when by the clock. */
  #present: { readonly state: NodeState; readonly at: number };
  /** Monotonic time since when `served` is behind the head; null: it is not. */
  #behindSince: number | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#offset = new ClockOffset(options.log);
    this.#present = { state: "joining", at: options.clock.now() };
  }

  get id(): string {
    return this.#options.id;
  }

  /** Follows the log from now on. The workers serve all that is stored. */
  begin(changes: Changes): void {
    this.#changes = changes;
    this.#served = this.#options.stored();
    changes.onServed(() => this.#servesAll());
    changes.onFact((fact) => {
      if (fact.kind === "node_drained" && fact.node_id === this.id) void this.#beat();
    });
    this.#tick();
  }

  /** Throws a 503 while the database does not answer: at once, not after the time of a query. */
  requireConnected(): void {
    if (this.#missedBeats < MISSED_BEATS) return;
    throw new ApiError(
      503,
      "this node is cut off from the database of its fleet: it serves what it has; nothing was changed",
      { headers: { "retry-after": "5" } },
    );
  }

  get state(): NodeState {
    if (this.#missedBeats >= MISSED_BEATS) return "cut off";
    if (this.#error !== "") return "refused";
    // Without an answer of the database this node is as far as it can know.
    if (!this.#hasServedHead && this.#missedBeats === 0) return "joining";
    if (this.#options.isDrained()) return "draining";
    return this.#served < this.#head ? "lagging" : "serving";
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

  async forget(id: string): Promise<boolean> {
    const { source, times } = this.#options;
    return await source.forgetAway(id, times.away);
  }

  notReady(): string | null {
    if (this.#options.isDrained()) return "draining: this node is to get no more requests";
    return this.state === "joining"
      ? "joining: this node does not serve the last change yet"
      : null;
  }

  onNodeEvent(listener: (event: NodeTransition) => void): void {
    this.#watch.on(listener);
  }

  status(): FleetStatus {
    const { state, at } = this.#noteState();
    const { live, nodes } = this.#watch.counts();
    return {
      node: this.#options.name,
      state,
      since: new Date(at).toISOString(),
      head: this.#head,
      stored: this.#options.stored(),
      served: this.#served,
      live: state === "cut off" ? null : live,
      nodes,
    };
  }

  figures(): FleetFigures {
    const { meter, stored } = this.#options;
    const since = this.#behindSince;
    const offset = this.#offset.ms;
    return {
      states: this.#watch.states(),
      head: this.#head,
      stored: stored(),
      served: this.#served,
      lagSeconds: since === null ? 0 : (performance.now() - since) / 1000,
      append: meter.append,
      ack: meter.ack,
      conflicts: meter.conflicts,
      doubts: meter.doubts,
      isConnected: this.#missedBeats === 0,
      clockOffsetSeconds: offset === null ? null : offset / 1000,
    };
  }

  #noteState(): { readonly state: NodeState; readonly at: number } {
    const { state } = this;
    if (state !== this.#present.state) this.#present = { state, at: this.#options.clock.now() };
    return this.#present;
  }

  /** Compares served and head after one of them has changed. */
  #noteLag(): void {
    const isBehind = this.#served < this.#head;
    if (!isBehind) this.#behindSince = null;
    else this.#behindSince ??= performance.now();
  }

  /** Waits until all nodes that are not away serve a change, or `wait` has passed. */
  async reach(
    { position, at }: NonNullable<FleetWrite["committed"]>,
    waitMs = this.#options.times.wait,
  ): Promise<Reach> {
    const end = performance.now() + waitMs;
    for (let pause = LOOK_MS; ; pause = Math.min(pause * 2, MAX_LOOK_MS)) {
      const nodes = await this.nodes();
      const missing = nodes.filter(({ served }) => served < position);
      if (missing.length === 0) this.#options.meter.ack.observe(performance.now() - at);
      const isWorthWaiting = missing.some(({ state }) => state !== "away" && state !== "refused");
      if (!isWorthWaiting || performance.now() >= end)
        return { live: nodes.length - missing.length, nodes: nodes.length, missing };
      await Bun.sleep(pause);
    }
  }

  /** All nodes with their states; this one by its own knowledge. */
  async nodes(): Promise<readonly NodeView[]> {
    const look = ++this.#looks;
    const nodes = await this.#options.source.nodes();
    const views = nodes.map((node) => this.#viewOf(node));
    if (look > this.#compared) {
      this.#compared = look;
      this.#watch.observe(views);
    }
    return views;
  }

  #viewOf(node: FleetNode): NodeView {
    const { id, name, version, error, seenMsAgo, draining, clockOffsetMs } = node;
    const known = {
      id,
      name,
      version,
      error,
      draining,
      seen_ms_ago: Math.round(seenMsAgo),
      clock_offset_ms: clockOffsetMs,
    };
    if (id !== this.id)
      return { ...known, stored: node.stored, served: node.served, state: this.#stateOf(node) };
    const { stored, isDrained } = this.#options;
    const own = { error: this.#error, draining: isDrained(), state: this.state };
    return { ...known, ...own, stored: stored(), served: this.#served };
  }

  #stateOf({ seenMsAgo, error, served, draining }: FleetNode): NodeState {
    if (seenMsAgo > this.#options.times.away) return "away";
    if (error !== "") return "refused";
    if (draining) return "draining";
    return served < this.#head ? "lagging" : "serving";
  }

  /** Leaves the fleet: the others do not wait for this node any more. */
  async end(): Promise<void> {
    this.#isEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const { source, id } = this.#options;
    await this.#beating;
    await source.forget(id).catch(() => undefined);
    await source.close();
  }

  #servesAll(): void {
    this.#served = this.#options.stored();
    this.#head = Math.max(this.#head, this.#served);
    this.#noteLag();
    void this.#beat();
  }

  #tick(): void {
    void this.#beat().finally(() => {
      if (!this.#isEnded) this.#timer = setTimeout(() => this.#tick(), this.#options.times.beat);
    });
  }

  /** One heartbeat at a time; what changes during one is told by another one right after it. */
  #beat(): Promise<void> {
    this.#wantsBeat = true;
    this.#beating ??= this.#beats().finally(() => {
      this.#beating = null;
    });
    return this.#beating;
  }

  async #beats(): Promise<void> {
    while (this.#wantsBeat && !this.#isEnded) {
      this.#wantsBeat = false;
      await this.#oneBeat();
    }
  }

  async #oneBeat(): Promise<void> {
    const { source, id, name, version, stored, log, clock, isDrained } = this.#options;
    const sentAt = clock.now();
    try {
      if (!this.#isListening) {
        await source.listen(() => void this.#follow());
        this.#isListening = true;
      }
      const answer = await source.beat({
        id,
        name,
        version,
        formatMax: ENTRY_FORMAT,
        stored: stored(),
        served: this.#served,
        error: this.#error,
        draining: isDrained(),
        clockOffsetMs: this.#offset.ms ?? 0,
      });
      this.#head = answer.position;
      this.#offset.measure(sentAt, answer.at, clock.now());
      this.#noteLag();
      this.#hasServedHead ||= this.#served >= this.#head;
      if (this.#missedBeats >= MISSED_BEATS)
        log.info("the database of the fleet answers again", { position: this.#head });
      this.#missedBeats = 0;
      if (this.#head > stored()) void this.#follow();
      this.#look();
    } catch (error) {
      this.#missedBeats++;
      if (this.#missedBeats === MISSED_BEATS)
        log.warn("the database of the fleet does not answer: this node serves what it has", {
          error,
        });
      if (this.#missedBeats >= MISSED_BEATS) {
        this.#isListening = false;
        source.reconnect();
        this.#watch.observeOne({ id, name, state: this.#noteState().state, error: this.#error });
      }
    }
  }

  /** Looks at all nodes from time to time. */
  #look(): void {
    this.#noteState();
    const now = performance.now();
    if (now - this.#lookedAt < WATCH_MS) return;
    this.#lookedAt = now;
    this.nodes().catch(() => undefined);
  }

  async #follow(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#changes?.follow();
      if (this.#error !== "") log.info("this node serves the log of its fleet again");
      this.#error = "";
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.#error)
        log.error("this node cannot serve the next change of its fleet", { error });
      this.#error = reason;
    }
    if (this.#served !== this.#options.stored()) this.#servesAll();
  }
}
