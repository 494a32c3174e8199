// Counts requests that clients broke off, by address, and says who has done it too often; knows no request.

/** More than so many within the window, in one worker, and the address is refused for as long. */
const MOST = 100;
const WINDOW_MS = 10_000;
/** Addresses that are kept apart; further ones are not counted until the next window. */
const MAX_ADDRESSES = 10_000;

/**
 * A client that opens requests and resets them at once has us and the target work for nobody (CVE-2023-44487). Only requests
 * that were still going on when the clock looked are counted: those that were answered before cost what any request does.
 */
export class AbortedRequests {
  readonly #told: (address: string) => void;
  readonly #counts = new Map<string, number>();
  /** Until when, by address. */
  readonly #refused = new Map<string, number>();
  #windowEnd = 0;

  /** `told` hears once of each address that is refused from now on. */
  constructor(told: (address: string) => void) {
    this.#told = told;
  }

  /** Whether anybody is refused at all: costs nothing to ask. */
  get refusesAny(): boolean {
    return this.#refused.size > 0;
  }

  refuses(address: string): boolean {
    const until = this.#refused.get(address);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#refused.delete(address);
    return false;
  }

  /** A client at the address has broken a request off. */
  note(address: string): void {
    const now = performance.now();
    if (now >= this.#windowEnd) {
      this.#counts.clear();
      this.#windowEnd = now + WINDOW_MS;
      for (const [each, until] of this.#refused) if (now >= until) this.#refused.delete(each);
    }
    const count = (this.#counts.get(address) ?? 0) + 1;
    if (count === 1 && this.#counts.size >= MAX_ADDRESSES) return;
    this.#counts.set(address, count);
    if (count !== MOST + 1) return;
    this.#refused.set(address, now + WINDOW_MS);
    this.#told(address);
  }
}
