// Smooth weighted round robin with one turn counter for all workers; knows no health.
import {
  type Balancer,
  type BalancerTarget,
  isEligible,
  type Load,
  type PickRequest,
} from "./balancer.ts";

/** Longest precomputed order of turns. */
const MAX_TURNS = 4096;
/** Bound of the work to precompute it: turns times targets. */
const MAX_WORK = 262_144;

export class RoundRobin<T extends BalancerTarget> implements Balancer<T> {
  readonly #turns: readonly T[];
  readonly #load: Load<T>;

  constructor(candidates: readonly T[], load: Load<T>) {
    this.#turns = turnsOf(candidates);
    this.#load = load;
  }

  pick({ tried }: PickRequest): T | null {
    const turns = this.#turns;
    if (turns.length === 0) return null;
    const start = this.#load.nextTurn() % turns.length;
    let cold: T | null = null;
    for (let step = 0; step < turns.length; step++) {
      const candidate = turns[(start + step) % turns.length];
      if (candidate === undefined || !isEligible(candidate, this.#load, tried)) continue;
      const slowStartFactor = this.#load.slowStartFactor(candidate);
      // In a slow start a target skips part of its turns.
      if (slowStartFactor >= 1 || this.#load.random() < slowStartFactor) return candidate;
      cold ??= candidate;
    }
    return cold;
  }
}

/** The order of turns: each candidate by its weight, spread evenly (nginx's smooth weighted round robin). */
function turnsOf<T extends BalancerTarget>(candidates: readonly T[]): readonly T[] {
  const divisor = candidates.reduce((found, { weight }) => gcd(found, weight), 0);
  let weights = candidates.map(({ weight }) => weight / divisor);
  let total = sum(weights);
  if (total === candidates.length) return candidates;
  const most = Math.min(MAX_TURNS, Math.floor(MAX_WORK / candidates.length));
  if (total > most) {
    // Scaled down; every candidate has at least one turn.
    weights = weights.map((weight) => Math.max(1, Math.round((weight * most) / total)));
    total = sum(weights);
  }
  const current = weights.map(() => 0);
  return Array.from({ length: total }, () => {
    let best = 0;
    for (let index = 0; index < weights.length; index++) {
      current[index] = (current[index] ?? 0) + (weights[index] ?? 0);
      if ((current[index] ?? 0) > (current[best] ?? 0)) best = index;
    }
    current[best] = (current[best] ?? 0) - total;
    return candidates[best] as T;
  });
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
