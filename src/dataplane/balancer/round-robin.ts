// Smooth weighted round robin, as nginx does it: turns of a heavy target are spread, not bunched; knows no health.
import type { Balancer, Candidate } from "./balancer.ts";

interface Turn<T> {
  readonly target: T;
  current: number;
}

export class RoundRobin<T extends Candidate> implements Balancer<T> {
  readonly #turns: Turn<T>[];
  readonly #only: T | null;

  /** Starts at a random place, so that many workers do not send their first requests to one target. */
  constructor(targets: readonly T[]) {
    this.#turns = targets.map((target) => ({ target, current: Math.random() * target.weight }));
    this.#only = targets.length === 1 ? (targets[0] ?? null) : null;
  }

  pick(tried: ReadonlySet<string> | null): T | null {
    if (this.#only !== null) return tried?.has(this.#only.id) ? null : this.#only;
    let total = 0;
    let best: Turn<T> | null = null;
    for (const turn of this.#turns) {
      if (tried?.has(turn.target.id)) continue;
      turn.current += turn.target.weight;
      total += turn.target.weight;
      if (best === null || turn.current > best.current) best = turn;
    }
    if (best === null) return null;
    best.current -= total;
    return best.target;
  }
}
