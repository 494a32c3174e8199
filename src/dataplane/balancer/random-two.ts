// Two targets at random, the better one of them is used; what is better is handed in. Knows no health.
import {
  type Balancer,
  type Candidate,
  firstOpen,
  isOpen,
  type Load,
  type PickRequest,
} from "./balancer.ts";
import { WeightedChoice } from "./weighted-choice.ts";

/** How busy or slow a candidate is: less is better. */
export type Cost<T extends Candidate> = (candidate: T, load: Load<T>) => number;

/** Requests in flight, of targets that were drawn by weight. */
export const byActive: Cost<Candidate> = (candidate, load) =>
  (load.active(candidate) + 1) / (candidate.weight * load.warmth(candidate));

/**
 * Time that a request will probably take: the average so far times the requests before it (peak EWMA, as in Finagle). A
 * target of which nothing is known is tried first.
 */
export const byLatency: Cost<Candidate> = (candidate, load) =>
  (load.latency(candidate) * (load.active(candidate) + 1)) /
  (candidate.weight * load.warmth(candidate));

/** Draws that may fall on a closed or the same target before all are looked at. */
const DRAWS = 8;

export class RandomTwo<T extends Candidate> implements Balancer<T> {
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
      if (candidate === undefined || candidate === first || !isOpen(candidate, load, tried))
        continue;
      if (first === null) first = candidate;
      else return this.#better(first, candidate);
    }
    // Most are closed, or one weighs nearly everything: look at them one after the other.
    const start = Math.floor(load.random() * this.#candidates.length);
    const other = firstOpen(
      this.#candidates,
      start,
      (candidate) => candidate !== first && isOpen(candidate, load, tried),
    );
    return first === null || other === null ? (first ?? other) : this.#better(first, other);
  }

  /** Weights have decided who was drawn: of two that are equally free the first stays. */
  #better(first: T, second: T): T {
    return this.#cost(second, this.#load) * second.weight <
      this.#cost(first, this.#load) * first.weight
      ? second
      : first;
  }
}
