// The target with the fewest requests in flight for its weight; knows no health.
import { type Balancer, type Candidate, isOpen, type Load, type PickRequest } from "./balancer.ts";

export class LeastConnections<T extends Candidate> implements Balancer<T> {
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
      if (!isOpen(candidate, load, tried)) continue;
      const weight = candidate.weight * load.warmth(candidate);
      const share = load.active(candidate) / weight;
      if (share > least) continue;
      if (share < least) total = 0;
      least = share;
      // Of equally busy ones each is taken as often as its weight says.
      total += weight;
      if (load.random() * total < weight) best = candidate;
    }
    return best;
  }
}
