// Weighted round robin with one turn for all workers: turns of a heavy target are spread, not bunched; knows no health.
import { type Balancer, type Candidate, isOpen, type Load, type PickRequest } from "./balancer.ts";

/** Longest order of turns that is written out. */
const MAX_TURNS = 4096;
/** Work that writing one out may take: turns times targets. */
const MAX_WORK = 262_144;

export class RoundRobin<T extends Candidate> implements Balancer<T> {
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
      if (candidate === undefined || !isOpen(candidate, this.#load, tried)) continue;
      const warmth = this.#load.warmth(candidate);
      // A target that starts slowly passes on the part of its turns that it is not warm for yet.
      if (warmth >= 1 || this.#load.random() < warmth) return candidate;
      cold ??= candidate;
    }
    return cold;
  }
}

/** The order of turns: each candidate as often as its weight says, spread evenly (as nginx's smooth weighted round robin). */
function turnsOf<T extends Candidate>(candidates: readonly T[]): readonly T[] {
  const divisor = candidates.reduce((found, { weight }) => gcd(found, weight), 0);
  let weights = candidates.map(({ weight }) => weight / divisor);
  let total = sum(weights);
  if (total === candidates.length) return candidates;
  const most = Math.min(MAX_TURNS, Math.floor(MAX_WORK / candidates.length));
  if (total > most) {
    // Rounded to what fits: every candidate keeps at least one turn.
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
