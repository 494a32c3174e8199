// Where limits are counted: what a store must be able to do, and the one in the memory of the gateway; knows no request.
import type { Admission, Counters } from "../../pdk/kit.ts";

/** A limit as a store needs it. */
export interface Rule {
  readonly name: string;
  readonly algorithm: "sliding" | "fixed" | "token_bucket";
  /** What there may be at most: in a window, or in the bucket. */
  readonly capacity: number;
  readonly windowMs: number;
  /** What a bucket gains. */
  readonly perSecond: number;
  /** As header fields name it. */
  readonly policy: string;
}

export interface Demand {
  readonly rule: Rule;
  readonly key: string;
  readonly cost: number;
}

export interface Verdict {
  readonly isAllowed: boolean;
  /** What is left, rounded down. */
  readonly remaining: number;
  /** Milliseconds until there is room for the cost when there is none, else until all is there again. */
  readonly resetMs: number;
}

export type Verdicts = readonly Verdict[] | Promise<readonly Verdict[]>;

/**
 * Counts for all limits of an instance. One that others share over the network answers with promises; what it throws is up to
 * the instance's `on_error`.
 */
export interface LimitStore {
  /** Takes all costs, or none when there is no room for one of them. */
  take(demands: readonly Demand[]): Verdicts;
  /** Says whether there is room, and takes nothing. */
  look(demands: readonly Demand[]): Verdicts;
  /** Counts the costs whether there is room or not. */
  count(demands: readonly Demand[]): Verdicts;
}

/** Counts in memory that all workers share. */
export class SharedStore implements LimitStore {
  readonly #counters: Counters;

  constructor(counters: Counters) {
    this.#counters = counters;
  }

  take(demands: readonly Demand[]): readonly Verdict[] {
    const [only] = demands;
    if (demands.length === 1 && only !== undefined) return [this.#take(only)];
    return this.#takeAll(demands);
  }

  #take(demand: Demand): Verdict {
    return isBucket(demand) ? this.#fromBucket(demand) : windowVerdict(demand, this.#admit(demand));
  }

  #takeAll(demands: readonly Demand[]): readonly Verdict[] {
    const admissions: (Admission | null)[] = [];
    const verdicts: Verdict[] = [];
    let isRefused = false;
    for (const demand of demands) {
      if (isRefused) {
        verdicts.push(this.#look(demand));
        continue;
      }
      const admission = isBucket(demand) ? null : this.#admit(demand);
      const verdict =
        admission === null ? this.#fromBucket(demand) : windowVerdict(demand, admission);
      verdicts.push(verdict);
      if (verdict.isAllowed) admissions.push(admission);
      else isRefused = true;
    }
    if (!isRefused) return verdicts;
    for (const [at, admission] of admissions.entries()) {
      const demand = demands[at];
      if (demand === undefined) continue;
      this.#giveBack(demand, admission);
      verdicts[at] = this.#look(demand);
    }
    return verdicts;
  }

  look(demands: readonly Demand[]): readonly Verdict[] {
    return demands.map((demand) => this.#look(demand));
  }

  count(demands: readonly Demand[]): readonly Verdict[] {
    return demands.map((demand) => {
      const { rule, key, cost } = demand;
      if (isBucket(demand)) {
        const { remaining, wait } = this.#counters.take(key, bucketOf(demand, cost));
        if (wait > 0) this.#counters.take(key, bucketOf(demand, remaining));
      } else this.#counters.add(key, cost, rule.windowMs);
      return this.#look(demand);
    });
  }

  #admit({ rule, key, cost }: Demand): Admission {
    const { windowMs, capacity: max, algorithm } = rule;
    return this.#counters.admit(key, { windowMs, max, cost, isSliding: algorithm === "sliding" });
  }

  #look(demand: Demand): Verdict {
    const { rule, key, cost } = demand;
    if (isBucket(demand)) {
      const { remaining } = this.#counters.take(key, bucketOf(demand, 0));
      const missing = cost - remaining;
      const wait = missing > 0 ? (missing / rule.perSecond) * 1000 : 0;
      return bucketVerdict(rule, remaining, wait);
    }
    // Nothing is added: there is room for the cost if there is room for nothing below so much less.
    const admission = this.#counters.admit(key, {
      windowMs: rule.windowMs,
      max: rule.capacity - cost,
      cost: 0,
      isSliding: rule.algorithm === "sliding",
    });
    return windowVerdict(demand, admission);
  }

  #fromBucket(demand: Demand): Verdict {
    const { remaining, wait } = this.#counters.take(demand.key, bucketOf(demand, demand.cost));
    return bucketVerdict(demand.rule, remaining, wait);
  }

  #giveBack(demand: Demand, admission: Admission | null): void {
    const { key, cost, rule } = demand;
    if (admission === null) this.#counters.take(key, bucketOf(demand, -cost));
    else this.#counters.revoke(key, admission, { cost, windowMs: rule.windowMs });
  }
}

const isBucket = ({ rule }: Demand) => rule.algorithm === "token_bucket";

const bucketOf = ({ rule: { capacity, perSecond } }: Demand, cost: number) => ({
  capacity,
  perSecond,
  cost,
});

const bucketVerdict = (
  { capacity, perSecond }: Rule,
  remaining: number,
  wait: number,
): Verdict => ({
  isAllowed: wait === 0,
  remaining: Math.floor(remaining),
  resetMs: wait > 0 ? wait : ((capacity - remaining) / perSecond) * 1000,
});

function windowVerdict({ rule, cost }: Demand, admission: Admission): Verdict {
  const { capacity, windowMs, algorithm } = rule;
  const { current, elapsedMs, isAdmitted } = admission;
  const left = windowMs - elapsedMs;
  const previous = algorithm === "sliding" ? admission.previous : 0;
  const used = current + previous * (left / windowMs);
  return {
    isAllowed: isAdmitted,
    remaining: Math.max(0, Math.floor(capacity - used)),
    resetMs:
      isAdmitted || algorithm === "fixed" ? left : slideMs({ rule, current, previous, left, cost }),
  };
}

/** Milliseconds until so much of the windows has gone by that there is room for the cost. */
function slideMs(state: {
  readonly rule: Rule;
  readonly current: number;
  readonly previous: number;
  readonly left: number;
  readonly cost: number;
}): number {
  const { rule, current, previous, left, cost } = state;
  const { capacity, windowMs } = rule;
  const room = capacity - cost;
  // Of the window before there may then be as much left as `room - current`.
  if (current <= room) return left - (windowMs * (room - current)) / previous;
  return left + windowMs * (1 - room / current);
}
