// The last notifications of one alert and their delivery, in memory; knows no sink.
import type { Notice } from "./notice.ts";

/** A notification and its delivery state. */
export interface AlertMessage extends Notice {
  readonly delivery: "waiting" | "delivered" | "lost";
  /** Why it was dropped; null: it was not. */
  readonly detail: string | null;
}

/** Older ones are dropped. */
const MAX_MESSAGES = 100;

export class MessageHistory {
  readonly #messages = new Map<string, AlertMessage>();

  /** Adds a pending notification. */
  put(notice: Notice): void {
    this.#messages.set(notice.id, { ...notice, delivery: "waiting", detail: null });
    for (const id of this.#messages.keys()) {
      if (this.#messages.size <= MAX_MESSAGES) break;
      this.#messages.delete(id);
    }
  }

  delivered(id: string): void {
    this.#settle(id, { delivery: "delivered", detail: null });
  }

  lost(id: string, reason: string): void {
    this.#settle(id, { delivery: "lost", detail: reason });
  }

  /** Newest first. */
  list(): readonly AlertMessage[] {
    return [...this.#messages.values()].toReversed();
  }

  #settle(id: string, outcome: Pick<AlertMessage, "delivery" | "detail">): void {
    const message = this.#messages.get(id);
    if (message !== undefined) this.#messages.set(id, { ...message, ...outcome });
  }
}
