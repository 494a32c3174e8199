// Consistent hashing: a removed target moves only its own keys; knows no request.
import {
  type Balancer,
  type BalancerTarget,
  firstEligible,
  isEligible,
  type Load,
  type PickRequest,
} from "./balancer.ts";

/**
 * Weighted rendezvous hashing (Thaler and Ravishankar 1998): every candidate scores the key, the highest wins. Unlike
 * a hash ring it divides keys exactly by weight, and it needs no table; it costs one logarithm for each candidate.
 */
export class ConsistentHash<T extends BalancerTarget> implements Balancer<T> {
  readonly #candidates: readonly T[];
  readonly #seeds: Int32Array;
  readonly #load: Load<T>;

  constructor(candidates: readonly T[], load: Load<T>) {
    this.#candidates = candidates;
    this.#seeds = Int32Array.from(candidates, ({ id }) => hashText(id));
    this.#load = load;
  }

  pick({ key, tried }: PickRequest): T | null {
    const candidates = this.#candidates;
    if (key === null) {
      const start = Math.floor(this.#load.random() * candidates.length);
      return firstEligible(candidates, start, (candidate) =>
        isEligible(candidate, this.#load, tried),
      );
    }
    let best: T | null = null;
    let highest = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < candidates.length; index++) {
      const candidate = candidates[index] as T;
      if (!isEligible(candidate, this.#load, tried)) continue;
      const uniform = (mix((this.#seeds[index] ?? 0) ^ key) + 0.5) / 4_294_967_296;
      const score = -candidate.weight / Math.log(uniform);
      if (score <= highest) continue;
      highest = score;
      best = candidate;
    }
    return best;
  }
}

/** 32 bits of a text. */
export function hashText(text: string): number {
  return Number(BigInt.asIntN(32, BigInt(Bun.hash(text))));
}

/** Spreads every bit over all (the finalizer of MurmurHash3), as an unsigned number. */
function mix(value: number): number {
  let bits = value ^ (value >>> 16);
  bits = Math.imul(bits, 0x85eb_ca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2_ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
