// Counts the results of ACME orders since the start, by account; knows no order.

export type OrderResult = "issued" | "failed";

export interface OrderCount {
  readonly accountId: string;
  readonly result: OrderResult;
  readonly count: number;
}

export class Tally {
  readonly #counts = new Map<string, Record<OrderResult, number>>();

  add(accountId: string, result: OrderResult): void {
    const counts = this.#counts.get(accountId) ?? { issued: 0, failed: 0 };
    counts[result]++;
    this.#counts.set(accountId, counts);
  }

  /** For accounts with orders. */
  read(): readonly OrderCount[] {
    return [...this.#counts].flatMap(([accountId, { issued, failed }]): OrderCount[] => [
      { accountId, result: "issued", count: issued },
      { accountId, result: "failed", count: failed },
    ]);
  }
}
