// The rollups that the nodes of a fleet have in common: sends what was written here, late where it has to; knows no database.
import type { Log } from "../../log.ts";
import {
  type RollupRow,
  type RollupStore,
  type Span,
  spans,
  type StatKind,
  statKinds,
} from "../../model/rollup.ts";
import { startOf } from "./rollups.ts";

/** Which rows a view needs. */
export interface SharedQuery {
  readonly span: Span;
  readonly kinds: readonly StatKind[];
  /** Seconds since 1970 at which they begin, both included. */
  readonly from: number;
  readonly to: number;
  /** Ids of nodes whose rows are not needed. */
  readonly without: readonly string[];
}

/** The rows of one node. */
export interface NodeRollups {
  /** Id of the node. */
  readonly id: string;
  /** Its last name. */
  readonly name: string;
  /** Milliseconds since 1970: what it has counted until then. */
  readonly until: number;
  readonly rows: readonly RollupRow[];
}

/** The database of a fleet, as far as statistics need it. */
export interface SharedRollups {
  /** Adds rows of this node, or replaces them: always all objects of a time and a kind. */
  write(rows: readonly RollupRow[]): Promise<void>;
  /** Rows of the other nodes. */
  read(query: SharedQuery): Promise<readonly NodeRollups[]>;
}

interface Period {
  readonly span: Span;
  readonly at: number;
}

/** Minutes, hours and days that wait while the database is away: about those of a day. The oldest are dropped. */
const MAX_WAITING = 1500;
/** Sent at once. */
const MAX_PERIODS = 30;

export interface RollupSenderOptions {
  readonly store: Pick<RollupStore, "range">;
  readonly shared: SharedRollups;
  readonly log: Log;
}

export class RollupSender {
  readonly #options: RollupSenderOptions;
  /** What was written here and not sent yet, the oldest first. */
  #waiting = new Map<string, Period>();
  #sending: Promise<void> | null = null;

  constructor(options: RollupSenderOptions) {
    this.#options = options;
  }

  /** Rows of these minutes have changed, and those of their hours and days. */
  note(minutes: readonly number[]): void {
    for (const minute of minutes)
      for (const span of spans) {
        const period = { span, at: startOf(minute * 1000, span) };
        const key = `${span} ${period.at}`;
        this.#waiting.delete(key);
        this.#waiting.set(key, period);
      }
    this.#bound();
  }

  /** Resolves when all is sent, or cannot be: then the next call tries again. */
  async send(): Promise<void> {
    if (this.#waiting.size > 0) this.#sending ??= this.#sendAll();
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    // After the assignment of the promise.
    await null;
    try {
      while (this.#waiting.size > 0) await this.#sendBatch();
    } catch (error) {
      this.#options.log.debug("statistics could not be sent to the database of the fleet yet", {
        error,
      });
    } finally {
      this.#sending = null;
    }
  }

  async #sendBatch(): Promise<void> {
    const { store, shared } = this.#options;
    const batch = [...this.#waiting].slice(0, MAX_PERIODS);
    for (const [key] of batch) this.#waiting.delete(key);
    try {
      const rows = batch.flatMap(([, { span, at }]) =>
        statKinds.flatMap((kind) => store.range({ span, kind }, { from: at, to: at })),
      );
      await shared.write(rows);
    } catch (error) {
      // What has changed meanwhile is sent as it is then.
      this.#waiting = new Map([...batch, ...this.#waiting]);
      this.#bound();
      throw error;
    }
  }

  #bound(): void {
    for (const key of this.#waiting.keys()) {
      if (this.#waiting.size <= MAX_WAITING) return;
      this.#waiting.delete(key);
    }
  }
}
