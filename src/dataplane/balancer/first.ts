// Always the first eligible target; the others are backups. Knows no health.
import {
  type Balancer,
  type BalancerTarget,
  isEligible,
  type Load,
  type PickRequest,
} from "./balancer.ts";

export class First<T extends BalancerTarget> implements Balancer<T> {
  readonly #candidates: readonly T[];
  readonly #load: Load<T>;

  constructor(candidates: readonly T[], load: Load<T>) {
    this.#candidates = candidates;
    this.#load = load;
  }

  pick({ tried }: PickRequest): T | null {
    for (const candidate of this.#candidates)
      if (isEligible(candidate, this.#load, tried)) return candidate;
    return null;
  }
}
