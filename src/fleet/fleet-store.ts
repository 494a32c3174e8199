// The store of a node in a fleet: a change is appended to the shared log first, then written to this node's database.
import { ChangeConflict, type ChangeStore, type ForeignChange } from "../control/change.ts";
import type { FleetWrite } from "../control/fleet-view.ts";
import type { NodeRequirement } from "../control/node-requirement.ts";
import type { Actor } from "../control/principal.ts";
import { ApiError } from "../model/error.ts";
import type { Fact } from "../model/fact.ts";
import type { ConfigChange } from "../model/gateway-config.ts";
import type { Pace } from "../pace.ts";
import type { Commit } from "../store/commit.ts";
import type { StagedChange } from "../store/staged-change.ts";
import type { EntryChange, EntryCodec, EntryContent, EntryMark } from "./entry.ts";
import type { FleetMeter } from "./meter.ts";
import { AppendInDoubt, type EntrySource } from "./source.ts";

/** This node's own store. */
export interface NodeStore extends Omit<ChangeStore, "commit" | "record" | "next"> {
  commit(write: Commit): void;
  record(facts: readonly Fact[], mark?: EntryMark): void;
  /** The last entry that was written; null: none. */
  mark(): EntryMark | null;
}

export interface FleetStoreOptions {
  readonly store: NodeStore;
  readonly source: EntrySource;
  readonly codec: EntryCodec;
  /** The id of this node. */
  readonly node: string;
  /** Throws while the source does not answer. */
  readonly requireConnected: () => void;
  /** What the request of this principal expects; null: nothing. */
  readonly expected: (by: Actor) => FleetWrite | null;
  /** Rejects while too few nodes are present. */
  readonly requirePresent: (requirement: NodeRequirement) => Promise<void>;
  readonly meter: FleetMeter;
}

type Write = Parameters<ChangeStore["commit"]>[0];

export class FleetStore implements ChangeStore {
  readonly #options: FleetStoreOptions;

  constructor(options: FleetStoreOptions) {
    this.#options = options;
  }

  problem(): string | null {
    return this.#options.store.problem?.() ?? null;
  }

  requireOpen(): void {
    this.#options.requireConnected();
  }

  async stage(change: ConfigChange, undo: ConfigChange, pace: Pace): Promise<StagedChange | null> {
    return (await this.#options.store.stage?.(change, undo, pace)) ?? null;
  }

  async commit(write: Write): Promise<void> {
    const { revision, entry, by, change, audit, facts } = write;
    const expected = this.#options.expected(by);
    if (expected !== null && expected.requires !== null)
      await this.#options.requirePresent(expected.requires);
    const mark = await this.#append({
      changed: { revision, ...entry, by: actorOf(by), change, audit },
      facts,
    });
    if (expected !== null) expected.committed = { position: mark.position, at: performance.now() };
    this.#options.store.commit({ ...write, mark });
  }

  async record(facts: readonly Fact[]): Promise<void> {
    const mark = await this.#append({ changed: null, facts });
    this.#options.store.record(facts, mark);
  }

  async next(): Promise<ForeignChange | null> {
    const { store, source, codec } = this.#options;
    const known = store.mark()?.position ?? 0;
    const [entry] = await source.after(known);
    if (entry === undefined) return null;
    if (entry.position !== known + 1)
      throw new ApiError(
        500,
        `the fleet's log continues at entry ${entry.position}, but this node has entries up to ${known}: it must join again`,
      );
    const { position, id } = entry;
    const { changed, facts } = codec.decode(entry);
    return {
      changed,
      facts,
      store: (undo) => {
        const mark = { position, id };
        if (changed === null || undo === null) store.record(facts, mark);
        else store.commit(commitOf(changed, { undo, facts, mark }));
      },
    };
  }

  /** Returns the place of the new entry; throws a ChangeConflict when another one came first. */
  async #append(content: EntryContent): Promise<EntryMark> {
    const { store, source, codec, node, meter } = this.#options;
    const mark = { position: (store.mark()?.position ?? 0) + 1, id: Bun.randomUUIDv7() };
    const entry = codec.encode(mark, node, content);
    const began = performance.now();
    try {
      if (await source.append(entry)) {
        meter.append.observe(performance.now() - began);
        return mark;
      }
    } catch (error) {
      if (!(error instanceof AppendInDoubt)) throw unavailable(error);
      meter.countDoubt();
      await this.#settle(mark);
      return mark;
    }
    meter.countConflict();
    throw new ChangeConflict();
  }

  /** Resolves when the entry is in the log after all; throws when it is not, or when that cannot be found out. */
  async #settle({ position, id }: EntryMark): Promise<void> {
    const { source } = this.#options;
    const found = await source.at(position).catch((error: unknown) => {
      throw new ApiError(
        504,
        `the database of the fleet did not answer in time: whether the change was made is not known (entry ${id})`,
        { cause: error },
      );
    });
    if (found?.id === id) return;
    if (found !== null) throw new ChangeConflict();
    throw unavailable(null);
  }
}

const RETRY_SECONDS = "5";

const unavailable = (cause: unknown) =>
  new ApiError(503, "the database of the fleet cannot be reached; nothing was changed", {
    cause,
    headers: { "retry-after": RETRY_SECONDS },
  });

/** Only the fields of an actor: a principal has more. */
const actorOf = ({ actor, method, address, sessionId }: Actor): Actor => ({
  actor,
  method,
  address,
  sessionId,
});

function commitOf(
  { revision, at, actor, summary, change, audit }: EntryChange,
  rest: Pick<Commit, "undo" | "facts" | "mark">,
): Commit {
  return { revision, entry: { at, actor, summary }, change, audit, ...rest };
}
