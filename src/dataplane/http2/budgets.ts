// How much a peer may send that costs the gateway more than itself: what fills again with time; knows no frame.

/** What a client may do so often at once, and how much more each second. */
interface Allowance {
  readonly atOnce: number;
  readonly perSecond: number;
  /** Why the connection ends, for the log. */
  readonly reason: string;
}

export const ALLOWANCES = {
  /**
   * Frames without effect: SETTINGS, PING, PRIORITY, PRIORITY_UPDATE, empty DATA, unknown ones, and WINDOW_UPDATE beyond those for
   * what was sent (CVE-2019-9511, -9512, -9513, -9515, -9518).
   */
  frames: { atOnce: 1000, perSecond: 100, reason: "too many HTTP/2 frames without effect" },
  /** Streams that the client resets before their response is complete (CVE-2023-44487). */
  resets: { atOnce: 1000, perSecond: 50, reason: "too many HTTP/2 streams that the client resets" },
  /** Streams that the gateway resets for what the client sends on them (CVE-2025-8671). */
  errors: { atOnce: 200, perSecond: 10, reason: "too many HTTP/2 streams with errors" },
  /** Streams over the limit of those at once: a client may open many before it knows the limit. */
  refusals: { atOnce: 2000, perSecond: 100, reason: "too many HTTP/2 streams over the limit" },
} as const satisfies Record<string, Allowance>;

export type BudgetName = keyof typeof ALLOWANCES;

/** Of one connection. */
export class Budgets {
  readonly #left: Record<BudgetName, number> = {
    frames: ALLOWANCES.frames.atOnce,
    resets: ALLOWANCES.resets.atOnce,
    errors: ALLOWANCES.errors.atOnce,
    refusals: ALLOWANCES.refusals.atOnce,
  };
  /** WINDOW_UPDATE and PING frames that belong to frames of bodies. */
  #replies = 0;

  /** False: it is used up, and the connection must end. */
  take(name: BudgetName): boolean {
    this.#left[name]--;
    return this.#left[name] >= 0;
  }

  /** A frame of a body was sent, to which the client may reply. */
  sent(): void {
    this.#replies = Math.min(this.#replies + REPLIES_EACH, MAX_REPLIES);
  }

  /** Whether a frame may be a reply to what was sent; else it is one without effect. */
  takeReply(): boolean {
    if (this.#replies === 0) return false;
    this.#replies--;
    return true;
  }

  /** `seconds` have passed. */
  refill(seconds: number): void {
    for (const name in ALLOWANCES) {
      const { atOnce, perSecond } = ALLOWANCES[name as BudgetName];
      const left = this.#left[name as BudgetName] + perSecond * seconds;
      this.#left[name as BudgetName] = Math.min(atOnce, left);
    }
  }
}

/** Two windows, and the PING by which gRPC clients measure. */
const REPLIES_EACH = 4;
const MAX_REPLIES = 10_000;
