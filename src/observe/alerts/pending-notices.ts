// Notifications of one alert that another node of the fleet sends: kept until it has, for when this node takes its work.
import type { Notice } from "./notice.ts";

/** The last attempt to deliver a notification comes about so long after the first one. Milliseconds. */
const KEPT_MS = 900_000;
/** The other node may see the same so much earlier. Milliseconds. */
const AHEAD_MS = 60_000;
const MAX_KEPT = 100;

/** The same for all nodes that see the same. */
export const noticeKey = ({ event, status, object: { kind, id } }: Notice): string =>
  `${event} ${status} ${kind} ${id}`;

interface Kept<T> {
  readonly value: T;
  readonly until: number;
}

export class PendingNotices {
  #kept: Kept<Notice>[] = [];
  /** Keys of what was sent before this node saw it. */
  #sentAhead: Kept<string>[] = [];

  /** Another node sends it. */
  put(notice: Notice, now: number): void {
    this.#forget(now);
    const key = noticeKey(notice);
    const sent = this.#sentAhead.findIndex(({ value }) => value === key);
    if (sent >= 0) this.#sentAhead.splice(sent, 1);
    else this.#kept = [...this.#kept, { value: notice, until: now + KEPT_MS }].slice(-MAX_KEPT);
  }

  /** Another node has sent it, or given up. */
  sent(key: string, now: number): void {
    this.#forget(now);
    const kept = this.#kept.findIndex(({ value }) => noticeKey(value) === key);
    if (kept >= 0) this.#kept.splice(kept, 1);
    else
      this.#sentAhead = [...this.#sentAhead, { value: key, until: now + AHEAD_MS }].slice(
        -MAX_KEPT,
      );
  }

  /** Those that no node has sent, the oldest first: this node sends them now. */
  take(now: number): readonly Notice[] {
    this.#forget(now);
    return this.#kept.splice(0).map(({ value }) => value);
  }

  #forget(now: number): void {
    const isValid = ({ until }: Kept<unknown>) => now < until;
    this.#kept = this.#kept.filter(isValid);
    this.#sentAhead = this.#sentAhead.filter(isValid);
  }
}
