// Writes down each minute what was counted in it, adds it to its hour and day and forgets what is too old; knows no counter and no SQL.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import { addTallies, fromDocument, type TallyDocument, toDocument } from "./tally.ts";
import { type Counted, CountedMap, OTHERS, type StatKind, statKinds } from "./traffic-deltas.ts";

/** Seconds. */
export const MINUTE = 60;
export const HOUR = 3600;
/** Only for objects: to add up those of a month from hours would take a second. */
export const DAY = 86_400;
const spans = [MINUTE, HOUR, DAY] as const;
export type Span = (typeof spans)[number];

/** How long rows are kept, in seconds: minutes for a day, the others for thirty. */
const KEPT = { [MINUTE]: DAY, [HOUR]: 30 * DAY, [DAY]: 31 * DAY } as const;

/** Objects of a kind that are told apart in a minute, an hour and a day; the rest is one row. */
export const MOST_OBJECTS = { [MINUTE]: 20, [HOUR]: 40, [DAY]: 40 } as const;

/** Minutes that wait to be written, when that fails; more are added to each other. */
const MOST_WAITING = 60;

/** What a row holds. */
export interface RollupDocument extends TallyDocument {
  readonly name: string;
}

export interface RollupKey {
  readonly span: Span;
  /** Seconds since 1970 at which it began. */
  readonly at: number;
  readonly kind: StatKind;
  readonly object_id: string;
}

export interface RollupRow extends RollupKey {
  readonly document: RollupDocument;
}

/** Rows inside of a transaction. */
export interface RollupRows {
  /** By object. */
  at(place: Omit<RollupKey, "object_id">): ReadonlyMap<string, RollupDocument>;
  put(row: RollupRow): void;
  /** Deletes what began before and what will begin after. */
  prune(span: Span, kept: { readonly from: number; readonly to: number }): void;
}

export interface RollupStore {
  /** Everything that `work` does is written, or nothing. */
  transact(work: (rows: RollupRows) => void): void;
  /** Rows that began at `from` or later and not after `to`, oldest first; of one object, or of all. */
  range(
    key: { readonly span: Span; readonly kind: StatKind; readonly object_id?: string | undefined },
    time: { readonly from: number; readonly to: number },
  ): readonly RollupRow[];
}

export interface RollupsOptions {
  readonly store: RollupStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** Minutes that are over go to the store; the present one is here. */
export class Rollups {
  readonly #options: RollupsOptions;
  readonly #waiting = new Map<number, CountedMap>();
  #hasFailed = false;

  constructor(options: RollupsOptions) {
    this.#options = options;
  }

  /** What was counted between two moments, in milliseconds since 1970; the clock may have been set back between them. */
  add(counted: readonly Counted[], from: number, to: number): void {
    // Long pauses: the machine slept, and what was counted came after it.
    const isClose = to >= from && to - from < 2 * MINUTE * 1000;
    const minute = startOf(isClose ? from : to, MINUTE);
    if (counted.length > 0) {
      const there = this.#waiting.get(minute) ?? new CountedMap();
      there.addAll(counted);
      this.#waiting.set(minute, there);
    }
    this.#mergeOldest();
  }

  /** Writes the minutes that are over; at the end also the present one. */
  write({ isEnd = false } = {}): void {
    const now = startOf(this.#options.clock.now(), MINUTE);
    const ready = [...this.#waiting].filter(([minute]) => isEnd || minute !== now);
    if (ready.length === 0) return;
    try {
      this.#options.store.transact((rows) => {
        for (const [minute, counted] of ready) writeMinute(rows, minute, counted);
        for (const span of spans)
          // What a clock that was ahead for a while has left in the future goes, too.
          rows.prune(span, { from: now - KEPT[span], to: now + KEPT[span] });
      });
      // Only now: what could not be written is tried again with the next minute.
      for (const [minute] of ready) this.#waiting.delete(minute);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        this.#options.log.warn("statistics could not be written and will be tried again", {
          error,
        });
      this.#hasFailed = true;
    }
  }

  /** Rows of the store and what is not written yet, oldest first; an object may be there twice for one time. */
  range(
    key: { readonly span: Span; readonly kind: StatKind; readonly object_id?: string | undefined },
    time: { readonly from: number; readonly to: number },
  ): { readonly at: number; readonly counted: readonly Counted[] }[] {
    const byTime = new Map<number, Counted[]>();
    const put = (at: number, counted: Counted) => {
      const there = byTime.get(at);
      if (there === undefined) byTime.set(at, [counted]);
      else there.push(counted);
    };
    for (const { at, kind, object_id: id, document } of this.#options.store.range(key, time))
      put(at, { kind, id, name: document.name, tally: fromDocument(document) });
    for (const [minute, counted] of this.#waiting) {
      const at = startOf(minute * 1000, key.span);
      if (at < time.from || at > time.to) continue;
      for (const one of counted.of(key.kind))
        if (key.object_id === undefined || key.object_id === one.id) put(at, one);
    }
    return [...byTime].sort(([a], [b]) => a - b).map(([at, counted]) => ({ at, counted }));
  }

  #mergeOldest(): void {
    while (this.#waiting.size > MOST_WAITING) {
      const [oldest, second] = [...this.#waiting.keys()].sort((a, b) => a - b);
      if (oldest === undefined || second === undefined) return;
      this.#waiting.get(second)?.addAll(this.#waiting.get(oldest)?.all ?? []);
      this.#waiting.delete(oldest);
    }
  }
}

/** Seconds since 1970 at which the minute or hour of a time in milliseconds began. */
export const startOf = (ms: number, span: number): number => Math.floor(ms / 1000 / span) * span;

function writeMinute(rows: RollupRows, minute: number, counted: CountedMap): void {
  for (const kind of statKinds) {
    const all = counted.of(kind).sort((a, b) => b.tally.requests - a.tally.requests);
    if (all.length === 0) continue;
    for (const span of spans) {
      const place = { span, at: startOf(minute * 1000, span), kind };
      const there = rows.at(place);
      for (const { id, name, tally } of folded(all, there, MOST_OBJECTS[span])) {
        const before = there.get(id);
        // It may be there already: the gateway was started anew in that minute, or the clock was set back.
        const sum = before === undefined ? tally : addTallies(fromDocument(before), tally);
        rows.put({ ...place, object_id: id, document: { name, ...toDocument(sum) } });
      }
    }
  }
}

/** Those that have a row, or still find room for one; all others as one. */
function folded(
  all: readonly Counted[],
  there: ReadonlyMap<string, unknown>,
  most: number,
): readonly Counted[] {
  const found = new CountedMap();
  let room = most - there.size;
  for (const one of all) {
    const isShown = there.has(one.id) || one.id === OTHERS || room > 0;
    if (isShown && !there.has(one.id) && one.id !== OTHERS) room--;
    found.add(isShown ? one : { ...one, id: OTHERS, name: OTHERS });
  }
  return found.all;
}
