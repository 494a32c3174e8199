// The store of a node in a fleet: a change is appended to the shared log first, then written to this node's database.
import type { ChangeStore, ForeignChange } from "../control/change-contract.ts";
import type { FleetWrite } from "../control/fleet-view.ts";
import type { NodeRequirement } from "../control/node-requirement.ts";
import type { Actor } from "../control/principal.ts";
import { combined, differenceOf, undoOf, undosOf } from "../control/undo.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import type { Fact } from "../model/fact.ts";
import type { ConfigChange, GatewayConfig } from "../model/gateway-config.ts";
import type { Pace } from "../pace.ts";
import type { Commit, RecordedEntry } from "../store/commit.ts";
import type { StagedChange } from "../store/staged-change.ts";
import { Appender, type AppenderOptions } from "./appender.ts";
import {
  type Entry,
  type EntryChange,
  type EntryContent,
  type EntryMark,
  isEmptyChange,
  Unfollowable,
} from "./entry.ts";
import { failPoint } from "./fail-point.ts";
import type { LogPage } from "./source.ts";
import { forgotten } from "./whole.ts";

/** This node's own store. */
export interface NodeStore extends Pick<ChangeStore, "problem" | "stage"> {
  /** Writes all of them or none. */
  write(entries: readonly (Commit | RecordedEntry)[]): void;
  /** The last entry that was written; null: none. */
  mark(): EntryMark | null;
  load(): { readonly config: GatewayConfig; readonly revision: number };
  facts(): readonly Fact[];
}

export interface FleetStoreOptions extends AppenderOptions {
  readonly store: NodeStore;
  /** Throws an ApiError while changes cannot be made here. */
  readonly requireOpen: () => void;
  readonly log: Log;
  /** A change is in the log, but not in this node's database. */
  readonly onObstacle: (obstacle: Unfollowable) => void;
  /** What the request of this principal expects; null: nothing. */
  readonly expected: (by: Actor) => FleetWrite | null;
  /** Rejects while too few nodes are present. */
  readonly requirePresent: (requirement: NodeRequirement) => Promise<void>;
}

type Write = Parameters<ChangeStore["commit"]>[0];

export class FleetStore implements ChangeStore {
  readonly #options: FleetStoreOptions;
  /** In the log and served from memory, but not in this node's database. */
  #unstored: Commit | RecordedEntry | null = null;
  readonly #appender: Appender;
  /** Number of entries in the last foreign change. */
  #offered = 0;
  #wasStored = true;

  constructor(options: FleetStoreOptions) {
    this.#options = options;
    this.#appender = new Appender(options);
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

  /** Whether the last foreign change was not stored for what may be the fault of one of its entries: the next has one only. */
  get mayBeOneOfMany(): boolean {
    return !this.#wasStored && this.#offered > 1;
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
    const expected = this.#options.expected(by);
    if (expected !== null && expected.requires !== null)
      await this.#options.requirePresent(expected.requires);
    const mark = await this.#appender.append(this.#next, {
      changed: { revision, ...entry, by: actorOf(by), change, audit },
      facts,
    });
    if (expected !== null) expected.committed = { position: mark.position, at: performance.now() };
    this.#write({ ...write, mark });
    failPoint("after_store");
  }

  async record(facts: readonly Fact[]): Promise<void> {
    this.requireOpen();
    const mark = await this.#appender.append(this.#next, { changed: null, facts });
    // It may have been followed meanwhile.
    if (this.applied >= mark.position) return;
    this.#write({ facts, mark });
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
    const { store, source } = this.#options;
    this.#storeAgain();
    await this.#appender.settleDoubt();
    const mark = store.mark();
    const known = mark?.position ?? 0;
    const page = await source.after(known);
    if (page.head < known || (page.knownId ?? mark?.id) !== mark?.id) throw diverged(page, known);
    const entries = page.entries.filter(({ position }, index) => position === known + index + 1);
    if (entries.length > 0) return this.#foreign(entries);
    if (page.head > known) return await this.#wholeAfter(page, known);
    if (page.knownId === null && known > 0) throw diverged(page, known);
    return null;
  }

  /** As one change, so that a node that was away is quick to catch up. */
  #foreign(entries: readonly Entry[]): ForeignChange {
    const { store } = this.#options;
    const applied = this.#decoded(this.mayBeOneOfMany ? entries.slice(0, 1) : entries);
    this.#offered = applied.length;
    this.#wasStored = false;
    const changes = applied.flatMap(({ changed }) => (changed === null ? [] : [changed]));
    const last = changes.at(-1);
    return {
      changed:
        last === undefined
          ? null
          : {
              ...last,
              change: combined(changes.map(({ change }) => change)),
              audit: changes.flatMap(({ audit }) => audit),
            },
      facts: applied.flatMap(({ facts }) => facts),
      store: (base) => {
        failPoint("follow_after_prepare");
        const undos = undosOf(
          changes.map(({ change }) => change),
          base,
        );
        // One that was recorded here meanwhile is there already.
        const missing = applied.filter(({ mark }) => mark.position > this.applied);
        store.write(
          missing.map(({ changed, facts, mark }) =>
            changed === null
              ? { facts, mark }
              : commitOf(changed, { undo: undos[changes.indexOf(changed)], facts, mark }),
          ),
        );
        this.#wasStored = true;
        failPoint("follow_after_store");
      },
    };
  }

  /** The entries up to the first one that this node must not apply; throws its reason when that is the first. */
  #decoded(entries: readonly Entry[]): (EntryContent & { readonly mark: EntryMark })[] {
    const decoded: (EntryContent & { readonly mark: EntryMark })[] = [];
    for (const entry of entries) {
      const { position, id } = entry;
      try {
        decoded.push({ ...this.#options.codec.decode(entry), mark: { position, id } });
      } catch (error) {
        if (decoded.length === 0) throw error;
        break;
      }
    }
    return decoded;
  }

  /** The next entries are not in the log any more: this node was away for long. */
  async #wholeAfter(page: LogPage, known: number): Promise<ForeignChange> {
    const { store, source, codec } = this.#options;
    const whole = await source.whole();
    if (whole === null || whole.position <= known) throw diverged(page, known);
    const { changed, facts } = codec.decode(whole);
    const { config, revision } = store.load();
    if (changed === null || changed.revision < revision) throw diverged(page, known);
    const change = differenceOf(config, changed.change);
    const mark = { position: whole.position, id: whole.id };
    const all = [...forgotten(store.facts(), facts), ...facts];
    if (changed.revision === revision) {
      if (!isEmptyChange(change)) throw diverged(page, known);
      return { changed: null, facts: all, store: () => store.write([{ facts: all, mark }]) };
    }
    return {
      changed: { ...changed, change },
      facts: all,
      store: (base) =>
        store.write([
          commitOf({ ...changed, change }, { undo: undoOf(change, base), facts: all, mark }),
        ]),
    };
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

const diverged = ({ head }: LogPage, known: number) =>
  new Unfollowable(
    "diverged",
    `the database of the fleet (last entry ${head}) lacks changes that this node has (last entry ${known}), as after the restore of a backup or a failover that lost some; decide with \`sluice fleet adopt\``,
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

interface CommitRest {
  readonly undo: ConfigChange | undefined;
  readonly facts: readonly Fact[];
  readonly mark: EntryMark;
}

function commitOf(
  { revision, at, actor, summary, change, audit }: EntryChange,
  { undo, ...rest }: CommitRest,
): Commit {
  const commit = { revision, entry: { at, actor, summary }, change, audit, ...rest };
  return undo === undefined ? commit : { ...commit, undo };
}
