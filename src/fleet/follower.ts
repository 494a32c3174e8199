// Follows the log of the fleet and reports with each heartbeat how far this node is; knows nothing of the other nodes.
import type { Clock } from "../clock.ts";
import type { Changes } from "../control/change.ts";
import type { NodeState } from "../control/fleet-view.ts";
import type { Log } from "../log.ts";
import { unavailable } from "../model/error.ts";
import type { EntryMark } from "../model/fact.ts";
import type { RolloutStatus } from "../snapshot/rollout.ts";
import { ClockOffset } from "./clock-offset.ts";
import { Contact, type ContactStore } from "./contact.ts";
import type { EntryCodec, Unfollowable } from "./entry.ts";
import { ENTRY_FORMAT } from "./entry-format.ts";
import { activationFailPoint } from "./fail-point.ts";
import type { FleetStore } from "./fleet-store.ts";
import type { FleetTimes } from "./times.ts";
import { signNode } from "./node-row.ts";
import type { Lease } from "./lease.ts";
import { cutOffError, Obstacle, reasonOf } from "./obstacle.ts";
import { meaningOf } from "./postgres-words.ts";
import { Rivalry } from "./rivalry.ts";
import { WakeUps } from "./wake-ups.ts";
import { type FleetSource, type Heartbeat, type LogEnd, SourceUnreachable } from "./source.ts";

export interface FollowerOptions {
  readonly source: FleetSource;
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
  readonly clock: Clock;
  readonly times: FleetTimes;
  readonly contact: ContactStore;
  readonly lease: Pick<Lease, "begin" | "end">;
  /** Removes entries from the log that no node needs, where that is due and the work of this node. */
  readonly prune: () => void;
  /** Whether this node asks load balancers to send no requests; from its database. */
  readonly isDrained: () => boolean;
}

/** What applies the entries. */
export interface FollowerParts {
  readonly changes: Changes;
  readonly store: FleetStore;
  readonly rolloutStatus: () => RolloutStatus;
}

/** A lost heartbeat may be chance; after two the connections are made anew. */
const MISSED_BEATS = 2;

export class Follower {
  readonly #options: FollowerOptions;
  readonly #contact: Contact;
  readonly #offset: ClockOffset;
  readonly #beatListeners: (() => void)[] = [];
  #parts: FollowerParts | null = null;
  #served = 0;
  #end: LogEnd = { position: 0, id: null, at: 0 };
  #missedBeats = 0;
  /** Why the last heartbeat failed, where more is known than that the database does not answer. */
  #meaning: string | null = null;
  readonly wakeUps: WakeUps;
  /** Until the workers have served the end of the log. */
  #isJoining = true;
  readonly #obstacle: Obstacle;
  readonly rivalry: Rivalry;
  /** Monotonic time since when the workers do not serve the end of the log; null: they do. */
  #behindSince: number | null = null;
  /** What the last heartbeat said. */
  #sent: Heartbeat | null = null;
  #beating: Promise<void> | null = null;
  #wantsBeat = false;
  #following: Promise<void> | null = null;
  #wantsFollow = false;
  #timer: Timer | null = null;
  #isSuspended = false;
  #isLeaving = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#contact = new Contact(options.contact);
    this.#offset = new ClockOffset(options.log);
    this.#obstacle = new Obstacle(options.log);
    this.rivalry = new Rivalry(options.log);
    this.wakeUps = new WakeUps(options, (position) => {
      if (this.#parts?.store.expects(position) === false) void this.#follow();
    });
  }

  /** Follows the log from now on; resolves when this node has all changes, or cannot get them. The workers serve all that is stored. */
  async begin(parts: FollowerParts, isReachable = true): Promise<void> {
    this.#parts = parts;
    if (!isReachable) this.#missedBeats = MISSED_BEATS;
    if (parts.changes.isSettled) this.#served = this.stored;
    parts.changes.onServed(() => {
      activationFailPoint();
      this.#report();
    });
    parts.changes.onSettled(() => this.#report());
    await (isReachable ? this.#beat() : void this.#beat());
    if (this.isConnected && this.#isBehind) await this.#follow();
    if (this.#isSuspended) return;
    this.#options.lease.begin();
    this.#timer = setTimeout(() => this.#tick(), this.#options.times.beat);
  }

  /** Calls `listener` after each heartbeat, also after a lost one. */
  onBeat(listener: () => void): void {
    this.#beatListeners.push(listener);
  }

  /** Throws a 503 while this node cannot make changes: at once, not after the time of a query. */
  requireOpen(): void {
    if (this.#isSuspended) throw unavailable("this node is being replaced");
    this.requireConnected();
    const { reason } = this.#obstacle;
    if (reason !== null)
      throw unavailable(`${reason.message}; nothing was changed: send changes to another node`);
  }

  /** Throws a 503 while this node is cut off. */
  requireConnected(): void {
    if (this.isCutOff) throw cutOffError(this.#meaning);
  }

  /** The database did not answer a change, or a look for entries. */
  lose(error: unknown = null): void {
    this.#missedBeats = Math.max(this.#missedBeats, MISSED_BEATS - 1);
    this.#miss(error);
    void this.#beat();
  }

  /** This node cannot follow. */
  obstruct(reason: Unfollowable, tookMs = 0): void {
    this.#obstacle.set(reason, this.#end.position, tookMs);
  }

  get state(): NodeState {
    if (this.isCutOff) return "cut_off";
    if (this.#isLeaving) return "leaving";
    if (this.rivalry.error !== null) return "refused";
    if (this.#obstacle.reason !== null) return this.#obstacle.reason.state;
    if (this.#parts?.changes.unbound != null) return "refused";
    // Without an answer of the database this node is as far as it can know.
    if (this.#isJoining && this.isConnected) return "joining";
    if (this.#options.isDrained()) return "draining";
    return this.#served < this.#end.position ? "lagging" : "serving";
  }

  /** Why this node cannot serve the next change, or not all of the last one; empty: it can. */
  get error(): string {
    return (
      this.rivalry.error ?? this.#obstacle.reason?.message ?? this.#parts?.changes.unbound ?? ""
    );
  }

  /** Position of the last entry in this node's database. */
  get stored(): number {
    return this.#options.mark()?.position ?? 0;
  }

  /** The same, or of the one after it that this node could not store. */
  get applied(): number {
    return this.#parts?.store.applied ?? this.stored;
  }

  /** Position of the last entry that all workers serve. */
  get served(): number {
    return this.#served;
  }

  /** Position of the last entry of the log, at the last heartbeat. */
  get head(): number {
    return Math.max(this.#end.position, this.#served);
  }

  get isConnected(): boolean {
    return this.#missedBeats === 0;
  }

  get isCutOff(): boolean {
    return this.#missedBeats >= MISSED_BEATS;
  }

  /** When the database answered last, in milliseconds of performance.now(); null: it answers. */
  cutOffSince(): number | null {
    return this.isCutOff ? this.#contact.answeredAt : null;
  }

  /** Since when the workers do not serve the last entry, in milliseconds of performance.now(); null: they do. */
  get behindSince(): number | null {
    return this.#behindSince;
  }

  /** What keeps this node from following, and since when; null: nothing. */
  get stop(): Obstacle["stop"] {
    return this.#obstacle.stop;
  }

  /** How long the workers have not served the last entry; 0: they do. */
  get lagMs(): number {
    return this.#behindSince === null ? 0 : performance.now() - this.#behindSince;
  }

  /** Milliseconds that the clock of this node is ahead of the database's; null: not measured yet. */
  get clockOffsetMs(): number | null {
    return this.#offset.ms;
  }

  /** The others do not wait for this node any more, which serves its last requests. */
  leave(): void {
    this.#isLeaving = true;
    void this.#beat();
  }

  /** Stops to follow and to report, before another process goes on with the data directory. */
  async suspend(): Promise<void> {
    this.#isSuspended = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#options.lease.end();
    await this.#beating;
    await this.#following;
  }

  /** Ends `suspend`. */
  resume(): void {
    this.#isSuspended = false;
    this.#options.lease.begin();
    this.#tick();
  }

  /** The others do not wait for this node any more; `isReplaced`: another process goes on in its place. */
  async end({ isReplaced }: { readonly isReplaced: boolean }): Promise<void> {
    await this.suspend();
    const { source, id } = this.#options;
    if (!isReplaced) await source.forget(id).catch(() => undefined);
    await source.close();
  }

  /** Whether the end of the log is not what this node has last. */
  get #isBehind(): boolean {
    const mark = this.#options.mark();
    return this.#end.position !== (mark?.position ?? 0) || this.#end.id !== (mark?.id ?? null);
  }

  /** Notes how far the workers are: those that did not serve a change are being replaced. */
  #update(): void {
    if (this.#parts === null) return;
    const { changes, store } = this.#parts;
    const { workers, ready, revision } = this.#parts.rolloutStatus();
    const isCurrent = revision === changes.revision && revision >= store.revision;
    if (ready === workers && isCurrent && changes.isSettled) this.#served = this.stored;
    if (this.#served < this.#end.position) {
      this.#behindSince ??= performance.now();
      return;
    }
    this.#behindSince = null;
    this.#isJoining = false;
  }

  #tick(): void {
    const { beat, poll } = this.#options.times;
    const pause = this.wakeUps.arrive === false ? poll : beat;
    void this.#beat().finally(() => {
      if (!this.#isSuspended) this.#timer = setTimeout(() => this.#tick(), pause);
    });
  }

  /** A heartbeat out of turn, when there is something new to say. */
  #report(): void {
    this.#update();
    const { served, state, error } = this.#sent ?? {};
    if (this.#served !== served || this.state !== state || this.error !== error) void this.#beat();
  }

  /** One heartbeat at a time; another one follows at once for what changes during one. */
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
      for (const listener of this.#beatListeners) listener();
    }
  }

  async #oneBeat(): Promise<void> {
    const { source, clock } = this.#options;
    const sentAt = clock.now();
    const row = this.#heartbeat();
    this.#sent = row;
    try {
      this.#end = await source.beat(row);
    } catch (error) {
      this.#miss(error);
      return;
    }
    this.rivalry.observe(this.#end.other ?? null);
    this.#offset.measure(sentAt, this.#end.at, clock.now());
    if (this.isCutOff) await this.#returned();
    this.#missedBeats = 0;
    this.#contact.answered();
    this.wakeUps.listen();
    if (this.#isBehind || this.#parts?.store.isInDoubt === true) {
      const isUnstored = this.#parts?.store.isUnstored === true;
      if (isUnstored || this.#obstacle.isDue(this.#end.position, this.#options.times.retry))
        void this.#follow();
    } else {
      this.#obstacle.clear();
      this.#options.prune();
    }
    this.#update();
    if (this.#served !== row.served || this.state !== row.state) this.#wantsBeat = true;
  }

  async #returned(): Promise<void> {
    const { source, log } = this.#options;
    log.info("the database of the fleet answers again", { position: this.#end.position });
    // A start without it could not create what this version adds.
    await source
      .open()
      .catch((error: unknown) => log.warn("the tables of the fleet are not complete", { error }));
  }

  #heartbeat(): Heartbeat {
    const { id, name, url, version, codec, isDrained } = this.#options;
    const row = {
      id,
      name,
      url: url ?? "",
      version,
      formatMax: ENTRY_FORMAT,
      stored: this.stored,
      served: this.#served,
      state: this.state,
      error: this.error,
      draining: isDrained(),
      clockOffsetMs: this.#offset.ms ?? 0,
    };
    return { ...row, mac: signNode(codec, row) };
  }

  #miss(error: unknown): void {
    const { log, source } = this.#options;
    this.#missedBeats++;
    this.#meaning = meaningOf(error);
    if (this.#missedBeats === MISSED_BEATS)
      log.warn("the database of the fleet does not answer: this node serves what it has", {
        reason: this.#meaning ?? "no response",
      });
    if (!this.isCutOff) return;
    this.wakeUps.lose();
    source.reconnect();
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
    const begun = performance.now();
    try {
      await changes.follow();
      this.#obstacle.clear();
    } catch (error) {
      this.#wantsFollow ||= store.mayBeOneOfMany;
      if (error instanceof SourceUnreachable) this.lose(error);
      else if (!this.#wantsFollow) this.obstruct(reasonOf(error), performance.now() - begun);
    }
    this.#report();
  }
}
