// A node's membership in a fleet: follows the log, reports how far it is, and counts which nodes serve a change.
import type { Changes } from "../control/change.ts";
import type { FleetView, NodeState, NodeView, Reach } from "../control/fleet-view.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import type { RolloutStatus } from "../snapshot/rollout.ts";
import { Contact, type ContactStore } from "./contact.ts";
import type { Duty } from "./duty.ts";
import { ENTRY_FORMAT, type EntryCodec, type EntryMark, Unfollowable } from "./entry.ts";
import { activationFailPoint } from "./fail-point.ts";
import type { FleetStore } from "./fleet-store.ts";
import type { FleetNode, Heartbeat, LogEnd, PostgresSource } from "./postgres-source.ts";
import { meaningOf } from "./postgres-words.ts";
import { SourceUnreachable } from "./source.ts";

/** Times in milliseconds. */
export interface FleetTimes {
  /** Between two heartbeats. Default 500. */
  readonly beat: number;
  /** The same while the database wakes nobody. Default 250. */
  readonly poll: number;
  /** After this time without a heartbeat a node counts as away: changes do not wait for it. Default 5000. */
  readonly away: number;
  /** A change waits so long for the other nodes. Default 2000. */
  readonly wait: number;
  /** A change that cannot be served here is tried again after this time, and with the next change. Default 10,000. */
  readonly retry: number;
  /** Between two looks at what can be removed from the log. Default 60,000. */
  readonly prune: number;
  /** How long the outcome of an append is looked for whose answer was lost. Default 800. */
  readonly doubt: number;
}

export const defaultTimes: FleetTimes = {
  beat: 500,
  poll: 250,
  away: 5000,
  wait: 2000,
  retry: 10_000,
  prune: 60_000,
  doubt: 800,
};

export interface FleetOptions {
  readonly source: PostgresSource;
  readonly codec: EntryCodec;
  /** The last entry in this node's database. */
  readonly mark: () => EntryMark | null;
  /** Id of this node. */
  readonly id: string;
  readonly name: string;
  /** Of its management API; null: unknown. */
  readonly url: string | null;
  readonly version: string;
  readonly log: Log;
  readonly times: FleetTimes;
  readonly contact: ContactStore;
  readonly duty: Duty;
  /** Removes entries from the log that no node needs. */
  readonly prune: () => Promise<void>;
}

/** What the fleet follows the log with. */
export interface FollowerParts {
  readonly changes: Changes;
  readonly store: FleetStore;
  readonly rolloutStatus: () => RolloutStatus;
}

/** Why this node does not follow. */
interface Obstacle {
  readonly reason: Unfollowable;
  /** The end of the log at that time. */
  readonly head: number;
  /** Monotonic, milliseconds. */
  readonly since: number;
}

/** A lost heartbeat may be chance; after two the connections are made anew. */
const MISSED_BEATS = 2;

/** First pause between two looks at the other nodes; doubles up to the last. */
const LOOK_MS = 2;
const MAX_LOOK_MS = 50;

const RETRY = { headers: { "retry-after": "5" } };

export class Fleet implements FleetView {
  readonly #options: FleetOptions;
  readonly #contact: Contact;
  #parts: FollowerParts | null = null;
  #served = 0;
  #end: LogEnd = { position: 0, id: null };
  #missedBeats = 0;
  /** Why the last heartbeat failed, where more is known than that the database does not answer. */
  #meaning: string | null = null;
  #isListening = false;
  /** Whether the database wakes this node; null: not tried yet. */
  #isWoken: boolean | null = null;
  #isJoining = true;
  #obstacle: Obstacle | null = null;
  #beating: Promise<void> | null = null;
  #wantsBeat = false;
  #timer: Timer | null = null;
  #isSuspended = false;
  #following: Promise<void> | null = null;
  #wantsFollow = false;
  #prunedAt = performance.now();

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#contact = new Contact(options.contact);
  }

  get id(): string {
    return this.#options.id;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Follows the log from now on; resolves when this node has all changes, or cannot get them. The workers serve all that is stored. */
  async begin(parts: FollowerParts): Promise<void> {
    this.#parts = parts;
    this.#served = this.#stored;
    parts.changes.onServed(() => {
      activationFailPoint();
      this.#update();
      void this.#beat();
    });
    await this.#beat();
    if (this.#isBehind) await this.#follow();
    this.#options.duty.begin(this);
    if (!this.#isSuspended) this.#timer = setTimeout(() => this.#tick(), this.#options.times.beat);
  }

  /** Throws a 503 while this node cannot make changes: at once, not after the time of a query. */
  requireOpen(): void {
    if (this.#isSuspended) throw new ApiError(503, "this node is being replaced", RETRY);
    this.requireConnected();
    if (this.#obstacle === null) return;
    const { message } = this.#obstacle.reason;
    throw new ApiError(503, `${message}; nothing was changed: send changes to another node`, RETRY);
  }

  requireConnected(): void {
    if (!this.#isCutOff) return;
    const reason = this.#meaning === null ? "" : `, which cannot be used (${this.#meaning})`;
    throw new ApiError(
      503,
      `this node is cut off from the database of its fleet${reason}: it serves what it has; nothing was changed`,
      RETRY,
    );
  }

  cutOffSince(): number | null {
    return this.#isCutOff ? this.#contact.answeredAt : null;
  }

  /** The database did not answer a change. */
  lose(): void {
    this.#missedBeats = Math.max(this.#missedBeats, MISSED_BEATS - 1);
    this.#miss(null);
    void this.#beat();
  }

  /** This node cannot follow; null: it can. */
  obstruct(reason: Unfollowable | null): void {
    const { log } = this.#options;
    const before = this.#obstacle?.reason.message;
    if (reason === null) {
      if (before !== undefined) log.info("this node follows its fleet again");
      this.#obstacle = null;
      return;
    }
    if (before !== reason.message)
      log.error("this node cannot follow its fleet", { error: reason.message });
    this.#obstacle = { reason, head: this.#end.position, since: performance.now() };
  }

  get state(): NodeState {
    if (this.#isCutOff) return "cut_off";
    if (this.#obstacle !== null) return this.#obstacle.reason.state;
    if (this.#isJoining) return "joining";
    return this.#served < this.#end.position ? "lagging" : "serving";
  }

  /** Waits until all nodes that are not away serve what this one has applied, or `wait` has passed. */
  async reach(waitMs = this.#options.times.wait): Promise<Reach> {
    const position = this.#parts?.store.applied ?? 0;
    const end = performance.now() + waitMs;
    for (let pause = LOOK_MS; ; pause = Math.min(pause * 2, MAX_LOOK_MS)) {
      const nodes = await this.nodes();
      const missing = nodes.filter(({ served }) => served < position);
      const isWorthWaiting = missing.some(({ state }) => !hopeless.has(state));
      if (!isWorthWaiting || performance.now() >= end)
        return { live: nodes.length - missing.length, nodes: nodes.length, missing };
      await Bun.sleep(pause);
    }
  }

  /** All nodes with their states; this one by its own knowledge. */
  async nodes(): Promise<readonly NodeView[]> {
    const nodes = await this.#options.source.nodes();
    return nodes.map((node) => this.#viewOf(node));
  }

  #viewOf(node: FleetNode): NodeView {
    const { id, name, url, version, seenMsAgo } = node;
    const known = {
      id,
      name,
      url: url === "" ? null : url,
      version,
      seen_ms_ago: Math.round(seenMsAgo),
    };
    if (id === this.#options.id) {
      const error = this.#obstacle?.reason.message ?? "";
      return { ...known, stored: this.#stored, served: this.#served, state: this.state, error };
    }
    const { stored, served, error } = node;
    if (!this.#options.codec.isSignedNode(signedFields(node), node.mac)) {
      const forged = "its row in the database is not signed with the secret key of this fleet";
      return { ...known, url: null, stored: 0, served: 0, state: "refused", error: forged };
    }
    return { ...known, stored, served, state: this.#stateOf(node), error };
  }

  #stateOf({ seenMsAgo, state, served }: FleetNode): NodeState {
    if (seenMsAgo > this.#options.times.away) return "away";
    if (state !== "serving" && state !== "lagging") return state as NodeState;
    return served < this.#end.position ? "lagging" : "serving";
  }

  /** Stops to follow and to report, before another process goes on with the data directory. */
  async suspend(): Promise<void> {
    this.#isSuspended = true;
    this.#options.duty.end();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#beating;
    await this.#following;
  }

  /** Ends `suspend`. */
  resume(): void {
    this.#isSuspended = false;
    this.#options.duty.begin(this);
    this.#tick();
  }

  /** The others do not wait for this node any more; `isReplaced`: another process goes on in its place. */
  async end({ isReplaced }: { readonly isReplaced: boolean }): Promise<void> {
    await this.suspend();
    const { source, id } = this.#options;
    if (!isReplaced) await source.forget(id).catch(() => undefined);
    await source.close();
  }

  get #isCutOff(): boolean {
    return this.#missedBeats >= MISSED_BEATS;
  }

  get #stored(): number {
    return this.#options.mark()?.position ?? 0;
  }

  /** Whether the end of the log is not what this node has last. */
  get #isBehind(): boolean {
    const mark = this.#options.mark();
    return this.#end.position !== (mark?.position ?? 0) || this.#end.id !== (mark?.id ?? null);
  }

  /** Notes how far the workers are: those that did not serve a change are being replaced. */
  #update(): void {
    if (this.#parts === null) return;
    const { changes, rolloutStatus } = this.#parts;
    const { workers, ready, revision } = rolloutStatus();
    if (ready < workers || revision !== changes.revision || !changes.isSettled) return;
    this.#served = this.#stored;
    if (this.#served >= this.#end.position) this.#isJoining = false;
  }

  #tick(): void {
    const { beat, poll } = this.#options.times;
    void this.#beat().finally(() => {
      const pause = this.#isWoken === false ? poll : beat;
      if (!this.#isSuspended) this.#timer = setTimeout(() => this.#tick(), pause);
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
    while (this.#wantsBeat && !this.#isSuspended) {
      this.#wantsBeat = false;
      await this.#oneBeat();
    }
  }

  async #oneBeat(): Promise<void> {
    const { source, log } = this.#options;
    try {
      this.#end = await source.beat(this.#heartbeat());
      if (this.#isCutOff)
        log.info("the database of the fleet answers again", { position: this.#end.position });
      this.#missedBeats = 0;
      this.#contact.answered();
    } catch (error) {
      this.#miss(error);
      return;
    }
    this.#listen();
    if (this.#isBehind) {
      this.#followWhenDue();
      return;
    }
    this.#pruneWhenDue();
    if (this.#obstacle !== null) this.obstruct(null);
    const before = this.#served;
    this.#update();
    if (this.#served !== before) this.#wantsBeat = true;
  }

  #heartbeat(): Heartbeat {
    const { id, name, url, version, codec } = this.#options;
    const row = {
      id,
      name,
      url: url ?? "",
      version,
      formatMax: ENTRY_FORMAT,
      stored: this.#stored,
      served: this.#served,
      state: this.state,
      error: this.#obstacle?.reason.message ?? "",
    };
    return { ...row, mac: codec.signNode(signedFields(row)) };
  }

  /** Without a wake-up the heartbeats find new entries, only later. */
  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const { source, log } = this.#options;
    source
      .listen(() => void this.#follow())
      .then(
        (isWoken) => {
          if (!isWoken && this.#isWoken !== false)
            log.warn(
              "the database of the fleet sends no notifications, as behind a pooler in transaction mode: this node polls",
            );
          this.#isWoken = isWoken;
        },
        () => {
          this.#isListening = false;
        },
      );
  }

  #miss(error: unknown): void {
    const { log, source } = this.#options;
    this.#missedBeats++;
    this.#meaning = meaningOf(error);
    if (this.#missedBeats === MISSED_BEATS)
      log.warn("the database of the fleet does not answer: this node serves what it has", {
        error,
      });
    if (!this.#isCutOff) return;
    this.#isListening = false;
    source.reconnect();
  }

  #followWhenDue(): void {
    const { times } = this.#options;
    const obstacle = this.#obstacle;
    const isDue =
      obstacle === null ||
      obstacle.head !== this.#end.position ||
      this.#parts?.store.isUnstored === true ||
      performance.now() - obstacle.since >= times.retry;
    if (isDue) void this.#follow();
  }

  /** One node does it. */
  #pruneWhenDue(): void {
    const { times, prune, duty, log } = this.#options;
    if (performance.now() - this.#prunedAt < times.prune) return;
    this.#prunedAt = performance.now();
    if (duty.isOurs)
      prune().catch((error: unknown) =>
        log.warn("the log of the fleet could not be pruned", { error }),
      );
  }

  /** One at a time; an entry that comes during one is found right after it. */
  #follow(): Promise<void> {
    this.#wantsFollow = true;
    this.#following ??= this.#follows().finally(() => {
      this.#following = null;
    });
    return this.#following;
  }

  async #follows(): Promise<void> {
    while (this.#wantsFollow && !this.#isSuspended) {
      this.#wantsFollow = false;
      await this.#followOnce();
    }
  }

  async #followOnce(): Promise<void> {
    if (this.#parts === null) return;
    const { changes, store } = this.#parts;
    try {
      await changes.follow();
      this.obstruct(null);
      this.#update();
    } catch (error) {
      this.#wantsFollow ||= store.mayBeOneOfMany;
      // Without the database the heartbeat says so.
      if (!this.#wantsFollow && !(error instanceof SourceUnreachable))
        this.obstruct(reasonOf(error));
    }
    void this.#beat();
  }
}

/** Waiting for a node in one of these states is in vain. */
const hopeless: ReadonlySet<NodeState> = new Set([
  "away",
  "refused",
  "outdated",
  "diverged",
  "cut_off",
]);

function reasonOf(error: unknown): Unfollowable {
  if (error instanceof Unfollowable) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Unfollowable(
    "refused",
    `this node cannot serve the next change of its fleet: ${message.replace("; nothing was changed", "")}`,
  );
}

/** What the signature of a node's row covers. */
const signedFields = (row: Omit<Heartbeat, "mac">): readonly (string | number)[] => {
  const { id, name, url, version, formatMax, stored, served, state, error } = row;
  return [id, name, url, version, formatMax, stored, served, state, error];
};
