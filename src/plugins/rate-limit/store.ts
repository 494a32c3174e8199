// Counts limits: the interface of stores, and the store in shared memory; knows no request.
import type { Admission, Counters } from "../../pdk/kit.ts";

/** A limit, for a store. */
export interface Rule {
  readonly name: string;
  readonly algorithm: "sliding" | "fixed" | "token_bucket";
  /** Maximum of a window, or capacity of the bucket. */
  readonly capacity: number;
  readonly windowMs: number;
  /** Refill rate of a bucket. */
  readonly perSecond: number;
  /** Name in the header fields. */
  readonly policy: string;
}

export interface Demand {
  readonly rule: Rule;
  readonly key: string;
  readonly cost: number;
}

export interface Verdict {
  readonly isAllowed: boolean;
  /** Remaining quota, rounded down. */
  readonly remaining: number;
  /** Milliseconds until there is room for the cost, or until the full quota is available when there is room now. */
  readonly resetMs: number;
}

/** Null: the limits cannot be checked, and the request must be rejected. Empty: they cannot be checked, and it is allowed. */
export type Verdicts = readonly Verdict[] | null | Promise<readonly Verdict[] | null>;

/** Counts for all limits of an instance; never rejects. */
export interface LimitStore {
  /** Consumes all costs, or none when one of them does not fit. */
  take(demands: readonly Demand[]): Verdicts;
  /** Checks for room without consuming. */
  look(demands: readonly Demand[]): Verdicts;
  /** Consumes the costs unconditionally. */
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
    // Adds nothing: the cost fits if 0 fits under a limit that is lower by the cost.
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

export const isBucket = ({ rule }: Pick<Demand, "rule">) => rule.algorithm === "token_bucket";

const bucketOf = ({ rule: { capacity, perSecond } }: Demand, cost: number) => ({
  capacity,
  perSecond,
  cost,
});

export const bucketVerdict = (
  { capacity, perSecond }: Rule,
  remaining: number,
  wait: number,
): Verdict => ({
  isAllowed: wait === 0,
  remaining: Math.floor(remaining),
  resetMs: wait > 0 ? wait : ((capacity - remaining) / perSecond) * 1000,
});

export function windowVerdict(
  { rule, cost }: Demand,
  admission: Omit<Admission, "window">,
): Verdict {
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

/** Milliseconds until the sliding windows have room for the cost. */
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
  // The previous window may then still count `room - current`.
  if (current <= room) return left - (windowMs * (room - current)) / previous;
  return left + windowMs * (1 - room / current);
}
