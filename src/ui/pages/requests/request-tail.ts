// Requests as they come in, kept down to what a page can show: samples, counts everything and waits while held; draws nothing.
import type { Schemas } from "../../api/resources.ts";

export type RequestRow = Schemas["Request"];

/** Rows that are kept; those before them go. */
export const MAX_ROWS = 200;
/** Rows that are added in a second: more can neither be drawn without a pause nor be read. */
export const ROWS_PER_SECOND = 40;
/** The rate is that of so many milliseconds. */
const RATE_MS = 3000;

export const statusClasses = ["1xx", "2xx", "3xx", "4xx", "5xx", "none"] as const;
export type StatusClass = (typeof statusClasses)[number];

/** How a status counts; without one nothing was answered, as for streams. */
export const classOf = (status: number | null): StatusClass =>
  statusClasses[status === null ? 5 : Math.floor(status / 100) - 1] ?? "none";

/** What a page shows at one moment. */
export interface TailView {
  /** The newest first. */
  readonly rows: readonly RequestRow[];
  /** Requests that came since the tail began, all of them. */
  readonly seen: number;
  readonly byClass: Readonly<Record<StatusClass, number>>;
  /** Those that came and are not shown, because there were too many of them. */
  readonly sampledOut: number;
  /** Those that the gateway did not send, because there were too many of them. */
  readonly dropped: number;
  /** Those that wait to be shown until the tail is let go. */
  readonly waiting: number;
  /** Requests that came in a second, of late. */
  readonly perSecond: number;
  /** How many of those that came are shown, of late: 0.1 is one in ten. */
  readonly share: number;
}

interface Slot {
  readonly at: number;
  came: number;
  taken: number;
}

export class RequestTail {
  #rows: readonly RequestRow[] = [];
  #waiting: RequestRow[] = [];
  #known = new Set<string>();
  #seen = 0;
  #byClass: Record<StatusClass, number> = {
    ...{ "1xx": 0, "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, none: 0 },
  };
  #sampledOut = 0;
  #dropped = 0;
  #slots: Slot[] = [];
  /** Rows that may be added now, and since when no more were allowed. */
  #room = ROWS_PER_SECOND;
  #roomAt = 0;

  /** One request of the stream; `now` in milliseconds. */
  push(row: RequestRow, now: number): void {
    this.#seen++;
    this.#byClass[classOf(row.status)]++;
    // It ended between two readings, and the list has told it already.
    if (this.#known.has(row.id)) return;
    const isTaken = this.#takeRoom(now);
    this.#count(now, isTaken);
    if (!isTaken) {
      this.#sampledOut++;
      return;
    }
    this.#known.add(row.id);
    this.#waiting.push(row);
    if (this.#waiting.length > MAX_ROWS) this.#forget(this.#waiting.splice(0, 1));
  }

  /** The gateway has left out so many. */
  drop(count: number): void {
    this.#dropped += count;
  }

  /** What the list told, the newest first: what came while nobody listened. It counts for nothing but the rows. */
  merge(list: readonly RequestRow[]): void {
    const added = list.filter(({ id }) => !this.#known.has(id));
    if (added.length === 0) return;
    for (const { id } of added) this.#known.add(id);
    const all = [...this.#rows, ...added].sort((a, b) => (a.time < b.time ? 1 : -1));
    this.#forget(all.slice(MAX_ROWS));
    this.#rows = all.slice(0, MAX_ROWS);
  }

  /** What is to be shown. Held, the rows stay as they are, and everything else goes on. */
  view(now: number, isHeld: boolean): TailView {
    if (!isHeld && this.#waiting.length > 0) {
      const all = [...this.#waiting.toReversed(), ...this.#rows];
      this.#waiting = [];
      this.#forget(all.slice(MAX_ROWS));
      this.#rows = all.slice(0, MAX_ROWS);
    }
    this.#slots = this.#slots.filter(({ at }) => at > now - RATE_MS);
    const came = this.#slots.reduce((sum, slot) => sum + slot.came, 0);
    const taken = this.#slots.reduce((sum, slot) => sum + slot.taken, 0);
    return {
      ...{ rows: this.#rows, seen: this.#seen, byClass: { ...this.#byClass } },
      ...{ sampledOut: this.#sampledOut, dropped: this.#dropped, waiting: this.#waiting.length },
      perSecond: Math.round(came / (RATE_MS / 1000)),
      share: came === 0 ? 1 : taken / came,
    };
  }

  #takeRoom(now: number): boolean {
    const gained = ((now - this.#roomAt) / 1000) * ROWS_PER_SECOND;
    this.#room = Math.min(ROWS_PER_SECOND, this.#room + Math.max(0, gained));
    this.#roomAt = now;
    if (this.#room < 1) return false;
    this.#room--;
    return true;
  }

  #count(now: number, isTaken: boolean): void {
    const last = this.#slots.at(-1);
    const slot = last !== undefined && now - last.at < 250 ? last : { at: now, came: 0, taken: 0 };
    if (slot !== last) this.#slots.push(slot);
    slot.came++;
    if (isTaken) slot.taken++;
    if (this.#slots.length > 40) this.#slots.shift();
  }

  #forget(rows: readonly RequestRow[]): void {
    for (const { id } of rows) this.#known.delete(id);
  }
}
