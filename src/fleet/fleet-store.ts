// The store of a node in a fleet: a change is appended to the shared log first, then written to this node's database.
import type { ChangeStore, FactOrigin, ForeignChange } from "../control/change-contract.ts";
import type { FleetWrite } from "../control/fleet-view.ts";
import type { NodeRequirement } from "../control/node-requirement.ts";
import type { Actor } from "../control/principal.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import type { ConfigChange } from "../model/gateway-config.ts";
import type { Pace } from "../pace.ts";
import type { Commit, RecordedEntry } from "../store/commit.ts";
import type { StagedChange } from "../store/staged-change.ts";
import { Appender, type AppenderOptions } from "./appender.ts";
import { type EntryContent, needOf, Unfollowable } from "./entry.ts";
import type { FormatNeed } from "./entry-format.ts";
import { failPoint } from "./fail-point.ts";
import { LogReader, type LogReaderOptions } from "./log-reader.ts";

export interface FleetStoreOptions extends AppenderOptions, LogReaderOptions {
  /** Throws an ApiError while changes cannot be made here. */
  readonly requireOpen: () => void;
  readonly log: Log;
  /** A change is in the log, but not in this node's database. */
  readonly onObstacle: (obstacle: Unfollowable) => void;
  /** What the request of this principal expects; null: nothing. */
  readonly expected: (by: Actor) => FleetWrite | null;
  /** Rejects while too few nodes are present. */
  readonly requirePresent: (requirement: NodeRequirement) => Promise<void>;
  /** Rejects while a node could not read an entry. Asked only for what the first format cannot hold. */
  readonly requireReadable: (need: FormatNeed) => Promise<void>;
}

type Write = Parameters<ChangeStore["commit"]>[0];

export class FleetStore implements ChangeStore {
  readonly #options: FleetStoreOptions;
  /** In the log and served from memory, but not in this node's database. */
  #unstored: Commit | RecordedEntry | null = null;
  /** Revision of this node's last change: its position is stored some turns before the change is the current one. */
  revision = 0;
  readonly #appender: Appender;
  readonly #reader: LogReader;

  constructor(options: FleetStoreOptions) {
    this.#options = options;
    this.#appender = new Appender(options);
    this.#reader = new LogReader(options);
  }

  problem(): string | null {
    return this.#options.store.problem?.() ?? null;
  }

  /** Position of the last entry that this node has applied, be it only in memory. */
  get applied(): number {
    return (this.#unstored?.mark ?? this.#options.store.mark())?.position ?? 0;
  }

  /** Whether this node has the entry of a position, or is about to know. */
  expects(position: number): boolean {
    return position <= this.applied || position === this.#appender.position;
  }

  get #next(): number {
    return (this.#options.store.mark()?.position ?? 0) + 1;
  }

  /** Whether a change is served from memory only. */
  get isUnstored(): boolean {
    return this.#unstored !== null;
  }

  /** Whether an entry may or may not be in the log, of which its end says nothing while no other node appends one: `next` finds out. */
  get isInDoubt(): boolean {
    return this.#appender.isInDoubt;
  }

  /** Whether the last foreign change was not stored for what may be the fault of one of its entries: the next has one only. */
  get mayBeOneOfMany(): boolean {
    return this.#reader.mayBeOneOfMany;
  }

  giveUp(): void {
    void this.#appender.endTurn();
  }

  requireOpen(): void {
    this.#options.requireOpen();
    this.#appender.requireNoDoubt();
  }

  async stage(change: ConfigChange, undo: ConfigChange, pace: Pace): Promise<StagedChange | null> {
    return (await this.#options.store.stage?.(change, undo, pace)) ?? null;
  }

  async commit(write: Write): Promise<void> {
    const { revision, entry, by, change, audit, facts } = write;
    requireFixedPorts(change);
    const changed = { revision, ...entry, by: actorOf(by), change, audit };
    const mark = await this.#append({ changed, facts }, write);
    this.revision = revision;
    this.#write({ ...write, mark });
    failPoint("after_store");
  }

  async record(facts: readonly Fact[], origin: FactOrigin): Promise<void> {
    this.requireOpen();
    const mark = await this.#append({ changed: null, facts }, origin);
    // It may have been followed meanwhile.
    if (this.applied >= mark.position) return;
    this.#write({ facts, mark });
    failPoint("after_store");
  }

  async #append(
    content: Omit<EntryContent, "previous">,
    { by, asLeader = false }: FactOrigin,
  ): Promise<EntryMark> {
    const expected = by === undefined ? null : this.#options.expected(by);
    if (expected !== null && expected.requires !== null)
      await this.#options.requirePresent(expected.requires);
    const need = needOf(content);
    if (need.format > 1) await this.#options.requireReadable(need);
    const previous = this.#options.store.mark()?.id ?? null;
    const mark = await this.#appender.append(this.#next, { ...content, previous }, asLeader);
    if (expected !== null) expected.committed = { position: mark.position, at: performance.now() };
    return mark;
  }

  /** Of an entry that is in the log: the other nodes get it, so this one goes on from memory when it cannot store it. */
  #write(entry: (Commit | RecordedEntry) & { readonly mark: EntryMark }): void {
    try {
      this.#options.store.write([entry]);
    } catch (error) {
      this.#unstored = "staged" in entry ? { ...entry, staged: null } : entry;
      this.#options.onObstacle(cannotStore(error));
    }
  }

  /** The workers that do not serve a change yet are being replaced: the fleet finds out when they do. */
  onUnserved(error: unknown): void {
    this.#options.log.error("a change is stored, but not all workers serve it yet", { error });
  }

  async next(): Promise<ForeignChange | null> {
    this.#storeAgain();
    await this.#appender.settleDoubt();
    const next = await this.#reader.next();
    // A decision for another history may lead to an earlier revision.
    if (next?.changed != null) this.revision = Math.min(this.revision, next.changed.revision);
    return next;
  }

  #storeAgain(): void {
    if (this.#unstored === null) return;
    try {
      this.#options.store.write([this.#unstored]);
    } catch (error) {
      throw cannotStore(error);
    }
    this.#unstored = null;
  }
}

const cannotStore = (error: unknown) =>
  new Unfollowable(
    "refused",
    `this node cannot store the last change of its fleet, and serves it from memory: ${error instanceof Error ? error.message.replace("; nothing was changed", "") : String(error)}`,
  );

/** All nodes serve the same listeners: a port that each one chooses would be a different one on each. */
function requireFixedPorts({ listeners }: ConfigChange): void {
  const free = listeners.upserts.find(({ port }) => port === 0);
  if (free !== undefined)
    throw new ApiError(400, `port: listener "${free.name}" of a fleet needs a fixed port, not 0`);
}

/** Only the fields of an actor: a principal has more. */
const actorOf = ({ actor, method, address, sessionId }: Actor): Actor => ({
  actor,
  method,
  address,
  sessionId,
});
