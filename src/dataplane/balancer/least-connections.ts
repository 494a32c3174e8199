// The target with the fewest requests in flight for its weight; knows no health.
import {
  type Balancer,
  type BalancerTarget,
  isEligible,
  type Load,
  type PickRequest,
} from "./balancer.ts";

export class LeastConnections<T extends BalancerTarget> implements Balancer<T> {
  readonly #candidates: readonly T[];
  readonly #load: Load<T>;

  constructor(candidates: readonly T[], load: Load<T>) {
    this.#candidates = candidates;
    this.#load = load;
  }

  pick({ tried }: PickRequest): T | null {
    const candidates = this.#candidates;
    const load = this.#load;
    let best: T | null = null;
    let least = Number.POSITIVE_INFINITY;
    let total = 0;
    for (const candidate of candidates) {
      if (!isEligible(candidate, load, tried)) continue;
      const weight = candidate.weight * load.slowStartFactor(candidate);
      const share = load.active(candidate) / weight;
      if (share > least) continue;
      if (share < least) total = 0;
      least = share;
      // Ties: at random by weight.
      total += weight;
      if (load.random() * total < weight) best = candidate;
    }
    return best;
  }
}
