// Always the first target that can take the request: the others stand by; knows no health.
import { type Balancer, type Candidate, isOpen, type Load, type PickRequest } from "./balancer.ts";

export class First<T extends Candidate> implements Balancer<T> {
  readonly #candidates: readonly T[];
  readonly #load: Load<T>;

  constructor(candidates: readonly T[], load: Load<T>) {
    this.#candidates = candidates;
    this.#load = load;
  }

  pick({ tried }: PickRequest): T | null {
    for (const candidate of this.#candidates)
      if (isOpen(candidate, this.#load, tried)) return candidate;
    return null;
  }
}
