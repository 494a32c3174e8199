// Weighted random choice in logarithmic time; knows no target.

/** Prefix sums of the weights; `at` finds the index for `random` from 0 to below 1. */
export class WeightedChoice {
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
