// The live tail of requests: samples rows, counts all requests, buffers while paused; renders nothing.
import type { Schemas } from "../../api/resources.ts";

export type RequestRow = Schemas["Request"] & {
  /** Name of the node; only in a fleet. */
  readonly node?: string;
};

/** Recent requests of this gateway, or of nodes of its fleet. */
export type RequestList = readonly RequestRow[] | Schemas["NodesRequests"];

export const rowsOf = (list: RequestList): readonly RequestRow[] =>
  "items" in list ? list.items : list;

/** Maximum number of rows; older ones are dropped. */
export const MAX_ROWS = 200;
/** Maximum new rows per second: more can neither be rendered smoothly nor read. */
export const ROWS_PER_SECOND = 40;
/** Window of the rate, in milliseconds. */
const RATE_MS = 3000;

export const statusClasses = ["1xx", "2xx", "3xx", "4xx", "5xx", "none"] as const;
export type StatusClass = (typeof statusClasses)[number];

/** The class of a status; none without a response, as for streams. */
const classOf = (status: number | null): StatusClass =>
  statusClasses[status === null ? 5 : Math.floor(status / 100) - 1] ?? "none";

/** A snapshot for rendering. */
export interface TailView {
  /** Newest first. */
  readonly rows: readonly RequestRow[];
  /** All requests since the tail started. */
  readonly seen: number;
  readonly byClass: Readonly<Record<StatusClass, number>>;
  /** Received requests that sampling dropped. */
  readonly sampledOut: number;
  /** Requests that the gateway dropped from the stream. */
  readonly dropped: number;
  /** Requests buffered until the tail resumes. */
  readonly waiting: number;
  /** Recent requests per second. */
  readonly perSecond: number;
  /** The recent share of shown requests: 0.1 is one in ten. */
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
    "1xx": 0,
    "2xx": 0,
    "3xx": 0,
    "4xx": 0,
    "5xx": 0,
    none: 0,
  };
  #sampledOut = 0;
  #dropped = 0;
  #slots: Slot[] = [];
  /** Token bucket for new rows, and the time of its last refill. */
  #room = ROWS_PER_SECOND;
  #roomAt = 0;

  /** One request of the stream; `now` in milliseconds. */
  push(row: RequestRow, now: number): void {
    this.#seen++;
    this.#byClass[classOf(row.status)]++;
    // The list already contained it.
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

  /** The number of requests that the gateway dropped. */
  drop(count: number): void {
    this.#dropped += count;
  }

  /** Rows from the list, newest first, which ended before the stream was open. They do not count. */
  merge(list: readonly RequestRow[]): void {
    const added = list.filter(({ id }) => !this.#known.has(id));
    if (added.length === 0) return;
    for (const { id } of added) this.#known.add(id);
    const all = [...this.#rows, ...added].sort((a, b) => (a.time < b.time ? 1 : -1));
    this.#forget(all.slice(MAX_ROWS));
    this.#rows = all.slice(0, MAX_ROWS);
  }

  /** The current snapshot. While held, rows stay unchanged and counters continue. */
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
      rows: this.#rows,
      seen: this.#seen,
      byClass: { ...this.#byClass },
      sampledOut: this.#sampledOut,
      dropped: this.#dropped,
      waiting: this.#waiting.length,
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
