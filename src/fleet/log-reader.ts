// Reads the entries of the shared log that this node lacks, as changes for it; appends nothing.
import type { ChangeStore, ForeignChange } from "../control/change-contract.ts";
import { combined, differenceOf, undoOf, undosOf } from "../model/undo.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import type { ConfigChange, GatewayConfig } from "../model/gateway-config.ts";
import type { Commit, RecordedEntry } from "../store/commit.ts";
import {
  type Entry,
  type EntryChange,
  type EntryCodec,
  type EntryContent,
  isEmptyChange,
  Unfollowable,
} from "./entry.ts";
import { failPoint } from "./fail-point.ts";
import type { EntrySource, LogPage } from "./source.ts";
import { forgotten } from "./whole.ts";

/** This node's own store. */
export interface NodeStore extends Pick<ChangeStore, "problem" | "stage"> {
  /** Writes all of them or none. */
  write(entries: readonly (Commit | RecordedEntry)[]): void;
  /** The last entry that was written; null: none. */
  mark(): EntryMark | null;
  load(): { readonly config: GatewayConfig; readonly revision: number };
  facts(): readonly Fact[];
  /** Writes a whole state, in the place of revisions from its own on. */
  replace(commit: Commit): void;
}

export interface LogReaderOptions {
  readonly store: NodeStore;
  readonly source: EntrySource;
  readonly codec: EntryCodec;
  /**
   * Copies the database, which is to lose changes, as it is after the entry at `position`; throws an ApiError when it cannot. Absent: there is nothing
   * to lose.
   */
  readonly keepCopy?: (position: number) => void;
}

export class LogReader {
  readonly #options: LogReaderOptions;
  /** Number of entries in the last foreign change. */
  #offered = 0;
  #wasStored = true;

  constructor(options: LogReaderOptions) {
    this.#options = options;
  }

  /** Whether the last foreign change was not stored for what may be the fault of one of its entries: the next has one only. */
  get mayBeOneOfMany(): boolean {
    return !this.#wasStored && this.#offered > 1;
  }

  /** The oldest entries that this node lacks; null: none. */
  async next(): Promise<ForeignChange | null> {
    const { store, source } = this.#options;
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
        const missing = applied.filter(({ mark }) => mark.position > (store.mark()?.position ?? 0));
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
    const { store, codec } = this.#options;
    let last = store.mark();
    for (const entry of entries) {
      const { position, id } = entry;
      try {
        const content = codec.decode(entry);
        if (content.previous !== (last?.id ?? null)) throw ofOtherHistory(position);
        // What follows is signed with the new key, and what comes before is sealed under the former one.
        const bringsKey = content.facts.some(({ kind }) => kind === "secret_key");
        if (bringsKey && decoded.length > 0) break;
        last = { position, id };
        decoded.push({ ...content, mark: last });
        if (bringsKey) break;
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
    const { changed, facts, isDecided = false } = codec.decode(whole);
    const { config, revision } = store.load();
    if (changed === null) throw diverged(page, known);
    const change = differenceOf(config, changed.change);
    const isAhead = changed.revision <= revision && !isEmptyChange(change);
    if (!isDecided && (isAhead || changed.revision < revision)) throw diverged(page, known);
    const mark = { position: whole.position, id: whole.id };
    const all = [...forgotten(store.facts(), facts), ...facts, ALL_PURGED];
    if (changed.revision === revision && !isAhead) {
      return { changed: null, facts: all, store: () => store.write([{ facts: all, mark }]) };
    }
    return {
      changed: { ...changed, change },
      facts: all,
      store: (base) => {
        if (isDecided && !isEmptyChange(change)) this.#options.keepCopy?.(known);
        const rest = { undo: undoOf(change, base), facts: all, mark };
        const commit = commitOf({ ...changed, change }, rest);
        if (changed.revision > revision) store.write([commit]);
        else store.replace(commit);
      },
    };
  }
}

/** The entries that this node never gets may have purged anything. */
const ALL_PURGED: Fact = { kind: "cache_purged", plugin_id: null, which: { by: "all" } };

const diverged = ({ head }: LogPage, known: number) =>
  new Unfollowable(
    "diverged",
    `the database of the fleet (last entry ${head}) lacks entry ${known}, the last one of this node, as after the restore of a backup or a failover that lost changes, or since another node was adopted; run \`sluice fleet adopt\` on a node, which shows what each has and asks which state is right`,
  );

const ofOtherHistory = (position: number) =>
  new Unfollowable(
    "diverged",
    `entry ${position} of the fleet's log does not follow the last one that this node has, as after the restore of a backup or a failover that lost some; run \`sluice fleet adopt\` on a node, which shows what each has and asks which state is right`,
  );

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
