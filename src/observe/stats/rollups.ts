// Rolls counters up per minute, hour and day, and deletes rows after their retention; knows no counter and no SQL.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import {
  type StatKind,
  statKinds,
  MINUTE,
  HOUR,
  DAY,
  spans,
  type Span,
  type RollupRows,
  type RollupStore,
} from "../../model/rollup.ts";
import { addTallies, fromDocument, toDocument } from "./tally.ts";
import { type Counted, CountedMap, OTHERS } from "./traffic-deltas.ts";

/** Retention of rows, in seconds: minutes for a day, the others for thirty. */
export const RETENTION = { [MINUTE]: DAY, [HOUR]: 30 * DAY, [DAY]: 31 * DAY } as const;

/** Objects of a kind with rows of their own in a minute, an hour and a day; the others share one row. */
export const MAX_OBJECTS = { [MINUTE]: 20, [HOUR]: 40, [DAY]: 40 } as const;

/** Minutes that wait after failed writes; more are merged. */
const MAX_WAITING = 60;

export interface RollupsOptions {
  readonly store: RollupStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with the minutes of each write, in seconds since 1970. */
  readonly onWritten?: (minutes: readonly number[]) => void;
}

/** Buffers the current minute and writes earlier ones to the store. */
export class Rollups {
  readonly #options: RollupsOptions;
  readonly #waiting = new Map<number, CountedMap>();
  #hasFailed = false;

  constructor(options: RollupsOptions) {
    this.#options = options;
  }

  /** Adds counters of an interval, in milliseconds since 1970; the clock may have been set back in it. */
  add(counted: readonly Counted[], from: number, to: number): void {
    // Long intervals: the machine was suspended, and the traffic came after it.
    const isClose = to >= from && to - from < 2 * MINUTE * 1000;
    const minute = startOf(isClose ? from : to, MINUTE);
    if (counted.length > 0) {
      const waiting = this.#waiting.get(minute) ?? new CountedMap();
      waiting.addAll(counted);
      this.#waiting.set(minute, waiting);
    }
    this.#mergeOldest();
  }

  /** Writes past minutes; at the end also the current one. */
  write({ isEnd = false } = {}): void {
    const now = startOf(this.#options.clock.now(), MINUTE);
    const ready = [...this.#waiting].filter(([minute]) => isEnd || minute !== now);
    if (ready.length === 0) return;
    try {
      this.#options.store.transact((rows) => {
        for (const [minute, counted] of ready) writeMinute(rows, minute, counted);
        for (const span of spans)
          // Also deletes rows in the future, from a clock that was ahead.
          rows.prune(span, { from: now - RETENTION[span], to: now + RETENTION[span] });
      });
      // Only after the commit: a failed write is retried with the next minute.
      for (const [minute] of ready) this.#waiting.delete(minute);
      this.#hasFailed = false;
      this.#options.onWritten?.(ready.map(([minute]) => minute));
    } catch (error) {
      if (!this.#hasFailed)
        this.#options.log.warn("statistics could not be written and will be tried again", {
          error,
        });
      this.#hasFailed = true;
    }
  }

  /** Rows of the store and unwritten ones, oldest first; may have an object twice for one time. */
  range(
    key: { readonly span: Span; readonly kind: StatKind; readonly object_id?: string | undefined },
    time: { readonly from: number; readonly to: number },
  ): { readonly at: number; readonly counted: readonly Counted[] }[] {
    const byTime = new Map<number, Counted[]>();
    const put = (at: number, counted: Counted) => {
      const known = byTime.get(at);
      if (known === undefined) byTime.set(at, [counted]);
      else known.push(counted);
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
    while (this.#waiting.size > MAX_WAITING) {
      const [oldest, second] = [...this.#waiting.keys()].sort((a, b) => a - b);
      if (oldest === undefined || second === undefined) return;
      this.#waiting.get(second)?.addAll(this.#waiting.get(oldest)?.all ?? []);
      this.#waiting.delete(oldest);
    }
  }
}

/** Start of the minute or hour, in seconds since 1970, of a time in milliseconds. */
export const startOf = (ms: number, span: number): number => Math.floor(ms / 1000 / span) * span;

function writeMinute(rows: RollupRows, minute: number, counted: CountedMap): void {
  for (const kind of statKinds) {
    const all = counted.of(kind).sort((a, b) => b.tally.requests - a.tally.requests);
    if (all.length === 0) continue;
    for (const span of spans) {
      const key = { span, at: startOf(minute * 1000, span), kind };
      const stored = rows.at(key);
      for (const { id, name, tally } of folded(all, stored, MAX_OBJECTS[span])) {
        const before = stored.get(id);
        // A row may exist: the gateway restarted in that minute, or the clock was set back.
        const sum = before === undefined ? tally : addTallies(fromDocument(before), tally);
        rows.put({ ...key, object_id: id, document: { name, ...toDocument(sum) } });
      }
    }
  }
}

/** Objects that have a row or find room for one; all others as one. */
function folded(
  all: readonly Counted[],
  stored: ReadonlyMap<string, unknown>,
  most: number,
): readonly Counted[] {
  const found = new CountedMap();
  let room = most - stored.size;
  for (const one of all) {
    const isShown = stored.has(one.id) || one.id === OTHERS || room > 0;
    if (isShown && !stored.has(one.id) && one.id !== OTHERS) room--;
    found.add(isShown ? one : { ...one, id: OTHERS, name: OTHERS });
  }
  return found.all;
}
