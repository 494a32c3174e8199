// A node's membership in a fleet: follows the log, reports how far it is, and counts which nodes serve a change.
import type { Changes } from "../control/change.ts";
import type { FleetView, NodeState, NodeView, Reach } from "../control/fleet-view.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import { ENTRY_FORMAT } from "./entry.ts";
import { activationFailPoint } from "./fail-point.ts";
import type { FleetNode, PostgresSource } from "./postgres-source.ts";
import { meaningOf } from "./postgres-words.ts";

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
  readonly times: FleetTimes;
}

/** A lost heartbeat may be chance; after two the connections are made anew. */
const MISSED_BEATS = 2;

/** First pause between two looks at the other nodes; doubles up to the last. */
const LOOK_MS = 2;
const MAX_LOOK_MS = 50;

export class Fleet implements FleetView {
  readonly #options: FleetOptions;
  #changes: Changes | null = null;
  #served = 0;
  #head = 0;
  #missedBeats = 0;
  /** Why the last heartbeat failed, where more is known than that the database does not answer. */
  #meaning: string | null = null;
  #isListening = false;
  /** Why the next entry cannot be served; empty: it can. */
  #error = "";
  #beating: Promise<void> | null = null;
  #wantsBeat = false;
  #following: Promise<void> | null = null;
  #wantsFollow = false;
  #timer: Timer | null = null;
  #isEnded = false;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }

  /** Follows the log from now on. The workers serve all that is stored. */
  begin(changes: Changes): void {
    this.#changes = changes;
    this.#served = this.#options.stored();
    changes.onServed(() => {
      activationFailPoint();
      this.#servesAll();
    });
    this.#tick();
  }

  /** Throws a 503 while the database does not answer: at once, not after the time of a query. */
  requireConnected(): void {
    if (this.#missedBeats < MISSED_BEATS) return;
    const reason = this.#meaning === null ? "" : `, which cannot be used (${this.#meaning})`;
    throw new ApiError(
      503,
      `this node is cut off from the database of its fleet${reason}: it serves what it has; nothing was changed`,
      { headers: { "retry-after": "5" } },
    );
  }

  get state(): NodeState {
    if (this.#missedBeats >= MISSED_BEATS) return "cut off";
    if (this.#error !== "") return "refused";
    return this.#served < this.#head ? "lagging" : "serving";
  }

  /** Waits until all nodes that are not away serve what this one has stored, or `wait` has passed. */
  async reach(waitMs = this.#options.times.wait): Promise<Reach> {
    const position = this.#options.stored();
    const end = performance.now() + waitMs;
    for (let pause = LOOK_MS; ; pause = Math.min(pause * 2, MAX_LOOK_MS)) {
      const nodes = await this.nodes();
      const missing = nodes.filter(({ served }) => served < position);
      const isWorthWaiting = missing.some(({ state }) => state !== "away" && state !== "refused");
      if (!isWorthWaiting || performance.now() >= end)
        return { live: nodes.length - missing.length, nodes: nodes.length, missing };
      await Bun.sleep(pause);
    }
  }

  /** All nodes with their states; this one by its own knowledge. */
  async nodes(): Promise<readonly NodeView[]> {
    const { source, id: own, stored } = this.#options;
    const nodes = await source.nodes();
    return nodes.map((node) => {
      const { id, name, version, error, seenMsAgo } = node;
      const known = { id, name, version, error, seen_ms_ago: Math.round(seenMsAgo) };
      return id === own
        ? { ...known, stored: stored(), served: this.#served, state: this.state }
        : { ...known, stored: node.stored, served: node.served, state: this.#stateOf(node) };
    });
  }

  #stateOf({ seenMsAgo, error, served }: FleetNode): NodeState {
    if (seenMsAgo > this.#options.times.away) return "away";
    if (error !== "") return "refused";
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
    const { source, id, name, version, stored, log } = this.#options;
    try {
      if (!this.#isListening) {
        await source.listen(() => void this.#follow());
        this.#isListening = true;
      }
      this.#head = await source.beat({
        id,
        name,
        version,
        formatMax: ENTRY_FORMAT,
        stored: stored(),
        served: this.#served,
        error: this.#error,
      });
      if (this.#missedBeats >= MISSED_BEATS)
        log.info("the database of the fleet answers again", { position: this.#head });
      this.#missedBeats = 0;
      if (this.#head > stored()) void this.#follow();
    } catch (error) {
      this.#missedBeats++;
      this.#meaning = meaningOf(error);
      if (this.#missedBeats === MISSED_BEATS)
        log.warn("the database of the fleet does not answer: this node serves what it has", {
          error,
        });
      if (this.#missedBeats >= MISSED_BEATS) {
        this.#isListening = false;
        source.reconnect();
      }
    }
  }

  /** One at a time; however many entries are announced meanwhile, one more look finds them. Changes wait behind each look. */
  #follow(): Promise<void> {
    this.#wantsFollow = true;
    this.#following ??= this.#follows().finally(() => {
      this.#following = null;
    });
    return this.#following;
  }

  async #follows(): Promise<void> {
    while (this.#wantsFollow && !this.#isEnded) {
      this.#wantsFollow = false;
      await this.#oneFollow();
    }
  }

  async #oneFollow(): Promise<void> {
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
