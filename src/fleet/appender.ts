// Appends entries to the shared log, one at a time: finds out what became of one whose response was lost, and takes turns with others.
import { ChangeConflict } from "../control/change-contract.ts";
import { ApiError } from "../model/error.ts";
import type { EntryMark } from "../model/fact.ts";
import type { EntryCodec, EntryContent } from "./entry.ts";
import { failPoint } from "./fail-point.ts";
import type { FleetMeter } from "./meter.ts";
import { meaningOf } from "./postgres-words.ts";
import { AppendInDoubt, type EntrySource, Superseded, type Term } from "./source.ts";

export interface AppenderOptions {
  readonly source: EntrySource;
  readonly codec: EntryCodec;
  /** The name of this node. */
  readonly node: string;
  /** How long a change waits for the outcome of an append whose response was lost. Milliseconds. */
  readonly doubtMs: number;
  /** The source did not respond. */
  readonly onLost: () => void;
  readonly meter: FleetMeter;
  /** What entries of the work that only one node does are appended with; null: another node may have it. */
  readonly term: () => Term | null;
}

/** Pause between two looks for an entry in doubt, and while another node has the turn. Milliseconds. */
const LOOK_MS = 20;

/** After so many conflicts in a row a change gets a turn of its own: other nodes would always be faster than a large one. */
const MAX_CONFLICTS = 3;
const TURN_MS = 10_000;

const RETRY_SECONDS = "5";

interface Place extends EntryMark, Pick<EntryContent, "previous"> {}

export class Appender {
  readonly #options: AppenderOptions;
  /** An entry that may or may not be in the log. */
  #doubt: Place | null = null;
  #position: number | null = null;
  /** In a row. */
  #conflicts = 0;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** Position of the entry that is being appended; null: none. */
  get position(): number | null {
    return this.#position;
  }

  /** Whether it is not known if an entry was stored. */
  get isInDoubt(): boolean {
    return this.#doubt !== null;
  }

  /** Throws a 503 while it is not known whether an entry was stored. */
  requireNoDoubt(): void {
    if (this.#doubt === null) return;
    throw new ApiError(
      503,
      `whether entry ${this.#doubt.id} was stored is not known yet: this node makes no further change before it is; nothing was changed`,
      { headers: { "retry-after": RETRY_SECONDS } },
    );
  }

  /** The entry in doubt is in the log when this resolves, or never will be. */
  async settleDoubt(): Promise<void> {
    if (this.#doubt !== null) await this.#isInLog(this.#doubt);
    this.#doubt = null;
  }

  /**
   * Returns the place of the new entry; throws a ChangeConflict when another one came first. `asLeader`: only while this node has
   * the work that only one node does; throws a 503 otherwise.
   */
  async append(position: number, content: EntryContent, asLeader = false): Promise<EntryMark> {
    const term = asLeader ? this.#options.term() : null;
    if (asLeader && term === null)
      throw new ApiError(503, "another node of the fleet does this work now; nothing was changed");
    this.#position = position;
    try {
      const id = Bun.randomUUIDv7();
      if (await this.#isAppended({ position, id, previous: content.previous }, content, term)) {
        await this.endTurn();
        return { position, id };
      }
    } finally {
      this.#position = null;
    }
    await this.#lost(position);
    throw new ChangeConflict();
  }

  async #isAppended(mark: Place, content: EntryContent, term: Term | null): Promise<boolean> {
    const { source, codec, node, onLost, meter } = this.#options;
    const entry = codec.encode({ position: mark.position, id: mark.id }, node, content);
    const began = performance.now();
    failPoint("before_append");
    try {
      const isAppended = await source.append(entry, term, mark.previous);
      failPoint("after_append");
      if (isAppended) meter.append.observe(performance.now() - began);
      return isAppended;
    } catch (error) {
      if (error instanceof Superseded) throw error;
      if (!(error instanceof AppendInDoubt)) {
        onLost();
        throw unavailable(error);
      }
      meter.countDoubt();
      return await this.#settle(mark);
    }
  }

  /** Another entry has the position, or another node the turn or the work: that ends by itself, and no turn of this one helps. */
  async #lost(position: number): Promise<void> {
    const { source, node, meter } = this.#options;
    if ((await source.idAt(position).catch(() => "")) === null) return await Bun.sleep(LOOK_MS);
    meter.countConflict();
    this.#conflicts++;
    if (this.#conflicts >= MAX_CONFLICTS) await source.reserve(node, TURN_MS).catch(() => false);
  }

  /** The others need not wait for this node. */
  async endTurn(): Promise<void> {
    const { source, node } = this.#options;
    const hadTurn = this.#conflicts >= MAX_CONFLICTS;
    this.#conflicts = 0;
    // Otherwise it ends by itself.
    if (hadTurn) await source.reserve(node, 0).catch(() => false);
  }

  /** Whether the entry is in the log; throws a 504 when that cannot be found out in time. */
  async #settle(mark: Place): Promise<boolean> {
    const { doubtMs, onLost } = this.#options;
    const late = Promise.withResolvers<null>();
    const timer = setTimeout(() => late.resolve(null), doubtMs);
    // A query may take longer than the time that is left.
    const isInLog = await Promise.race([this.#look(mark, doubtMs), late.promise]);
    clearTimeout(timer);
    if (isInLog !== null) return isInLog;
    this.#doubt = mark;
    onLost();
    throw new ApiError(
      504,
      `the database of the fleet did not answer in time: whether the change was made is not known (entry ${mark.id})`,
    );
  }

  /** Whether the entry is in the log; null: the source did not say. */
  async #look(mark: Place, ms: number): Promise<boolean | null> {
    const end = performance.now() + ms;
    for (;;) {
      const isInLog = await this.#isInLog(mark).catch(() => null);
      if (isInLog !== null || performance.now() + LOOK_MS >= end) return isInLog;
      await Bun.sleep(LOOK_MS);
    }
  }

  /**
   * When it is not there, an entry without content takes its place, so that it cannot arrive later. Null: the log does not say,
   * because it has lost its entry of that position.
   */
  async #isInLog({ position, id, previous }: Place): Promise<boolean | null> {
    const { source, codec, node } = this.#options;
    for (;;) {
      const found = await source.idAt(position);
      if (found !== null) return found === id;
      const empty = { position, id: Bun.randomUUIDv7() };
      if (await source.append(codec.encode(empty, node, { changed: null, facts: [], previous })))
        return false;
      const { head } = await source.after(Number.MAX_SAFE_INTEGER);
      // Pruned or replaced, or too short for an entry there: no late one can arrive either.
      if (head !== position - 1 && (await source.idAt(position)) === null) return null;
      // Another node has the turn.
      await Bun.sleep(LOOK_MS);
    }
  }
}

function unavailable(cause: unknown): ApiError {
  const meaning = meaningOf(cause);
  const problem = meaning === null ? "cannot be reached" : `cannot be used: ${meaning}`;
  return new ApiError(503, `the database of the fleet ${problem}; nothing was changed`, {
    cause,
    headers: { "retry-after": RETRY_SECONDS },
  });
}
