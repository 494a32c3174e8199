// Why a node does not follow the log of its fleet, and when it tries again; knows no log.
import type { Log } from "../log.ts";
import { type ApiError, unavailable } from "../model/error.ts";
import { type ObstacleState, Unfollowable } from "./entry.ts";

export class Obstacle {
  readonly #log: Log;
  #reason: Unfollowable | null = null;
  /** The end of the fleet's log at the last attempt. */
  #head = 0;
  /** Monotonic, milliseconds: of the last attempt, and since when this node does not follow. */
  #triedAt = 0;
  #began = 0;
  #tookMs = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Null: the node follows. */
  get reason(): Unfollowable | null {
    return this.#reason;
  }

  /** What keeps this node from following, and since when, in milliseconds of performance.now(); null: nothing. */
  get stop(): { readonly state: ObstacleState; readonly since: number } | null {
    return this.#reason === null ? null : { state: this.#reason.state, since: this.#began };
  }

  /** `tookMs`: the attempt. */
  set(reason: Unfollowable, head: number, tookMs: number): void {
    if (this.#reason?.message !== reason.message)
      this.#log.error("this node cannot follow its fleet", { error: reason.message });
    const now = performance.now();
    if (this.#reason === null) this.#began = now;
    this.#reason = reason;
    this.#head = head;
    this.#triedAt = now;
    this.#tookMs = tookMs;
  }

  clear(): void {
    if (this.#reason !== null) this.#log.info("this node follows its fleet again");
    this.#reason = null;
  }

  /** Whether to try again: with each new entry, and from time to time, where attempts are slow for a fifth of the time. */
  isDue(head: number, retryMs: number): boolean {
    const pauseMs = Math.max(retryMs, 4 * this.#tookMs);
    return (
      this.#reason === null || head !== this.#head || performance.now() - this.#triedAt >= pauseMs
    );
  }
}

export function reasonOf(error: unknown): Unfollowable {
  if (error instanceof Unfollowable) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Unfollowable(
    "refused",
    `this node cannot serve the next change of its fleet: ${message.replace("; nothing was changed", "")}`,
  );
}

/** `meaning`: what is known beside that the database does not answer; null: nothing. */
export function cutOffError(meaning: string | null): ApiError {
  const reason = meaning === null ? "" : `, which cannot be used (${meaning})`;
  return unavailable(
    `this node is cut off from the database of its fleet${reason}: it serves what it has; nothing was changed`,
  );
}
