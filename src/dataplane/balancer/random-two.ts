// The better of two random targets (power of two choices), by a given cost; knows no health.
import {
  type Balancer,
  type BalancerTarget,
  firstEligible,
  isEligible,
  type Load,
  type PickRequest,
} from "./balancer.ts";

/** Lower is better. */
export type Cost<T extends BalancerTarget> = (candidate: T, load: Load<T>) => number;

/** Requests in flight per weight. */
const byActive: Cost<BalancerTarget> = (candidate, load) =>
  (load.active(candidate) + 1) / (candidate.weight * load.slowStartFactor(candidate));

/**
 * Expected duration: the average latency times the requests in flight (peak EWMA, as in Finagle). A
 * target without a known latency comes first.
 */
export const byLatency: Cost<BalancerTarget> = (candidate, load) =>
  (load.latency(candidate) * (load.active(candidate) + 1)) /
  (candidate.weight * load.slowStartFactor(candidate));

/** Draws that may hit an ineligible or the same target before a linear search. */
const DRAWS = 8;

export class RandomTwo<T extends BalancerTarget> implements Balancer<T> {
  readonly #candidates: readonly T[];
  readonly #load: Load<T>;
  readonly #cost: Cost<T>;
  readonly #choice: WeightedChoice;

  constructor(candidates: readonly T[], load: Load<T>, cost: Cost<T> = byActive as Cost<T>) {
    this.#candidates = candidates;
    this.#load = load;
    this.#cost = cost;
    this.#choice = new WeightedChoice(candidates.map(({ weight }) => weight));
  }

  pick({ tried }: PickRequest): T | null {
    const load = this.#load;
    let first: T | null = null;
    for (let draw = 0; draw < DRAWS; draw++) {
      const candidate = this.#candidates[this.#choice.at(load.random())];
      if (candidate === undefined || candidate === first || !isEligible(candidate, load, tried))
        continue;
      if (first === null) first = candidate;
      else return this.#better(first, candidate);
    }
    // Most are ineligible, or one has nearly all the weight.
    const start = Math.floor(load.random() * this.#candidates.length);
    const other = firstEligible(
      this.#candidates,
      start,
      (candidate) => candidate !== first && isEligible(candidate, load, tried),
    );
    return first === null || other === null ? (first ?? other) : this.#better(first, other);
  }

  /** Without weights, which have already decided the draw; the first wins a tie. */
  #better(first: T, second: T): T {
    return this.#cost(second, this.#load) * second.weight <
      this.#cost(first, this.#load) * first.weight
      ? second
      : first;
  }
}

/** Weighted random choice in logarithmic time, over prefix sums; `at` finds the index for `random` from 0 to below 1. */
class WeightedChoice {
  readonly #sums: Float64Array;
  readonly #total: number;

  constructor(weights: readonly number[]) {
    this.#sums = new Float64Array(weights.length);
    let total = 0;
    for (const [index, weight] of weights.entries()) {
      total += weight;
      this.#sums[index] = total;
    }
    this.#total = total;
  }

  at(random: number): number {
    const wanted = random * this.#total;
    let [low, high] = [0, this.#sums.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sums[middle] ?? 0) > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
