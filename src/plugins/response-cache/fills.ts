// Answers that are on their way into the store: who fetches one, who waits for it, which must not be stored any more; knows no request.

/** What becomes of somebody who waits: look again, or fetch it yourself. */
export type Verdict = "look" | "fetch";

type Wake = (verdict: Verdict) => void;

/** A fetch whose answer may be stored. */
export class Fill {
  readonly key: string;
  readonly resource: string;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
  /** What it was to answer has changed meanwhile. */
  isOutdated = false;
  /** Whether others wait for it. */
  isLeading: boolean;
  readonly waiting = new Set<Wake>();

  constructor(place: { readonly key: string; readonly resource: string }, isLeading: boolean) {
    this.key = place.key;
    this.resource = place.resource;
    this.startedAt = performance.now();
    this.isLeading = isLeading;
  }
}

/** Nobody waits longer than this for somebody else's fetch. */
const MAX_WAIT_MS = 30_000;

/** So many may wait in one worker; further ones fetch for themselves. */
const MAX_WAITING = 10_000;

export class Fills {
  readonly #all = new Set<Fill>();
  /** Those that others wait for, by key. */
  readonly #leading = new Map<string, Fill>();
  #waiting = 0;

  /** The fetch that is to be waited for; null: there is none, or it takes too long already. */
  leaderOf(key: string): Fill | null {
    const fill = this.#leading.get(key);
    if (fill === undefined || this.#waiting >= MAX_WAITING) return null;
    return performance.now() - fill.startedAt < MAX_WAIT_MS ? fill : null;
  }

  /** Begins a fetch; it leads when nobody else does and `mayLead`. */
  begin(place: { readonly key: string; readonly resource: string }, mayLead: boolean): Fill {
    const fill = new Fill(place, mayLead && this.leaderOf(place.key) === null);
    this.#all.add(fill);
    if (fill.isLeading) this.#leading.set(fill.key, fill);
    return fill;
  }

  /** Resolves when the fetch has ended, the client goes away, or it takes too long. */
  wait(fill: Fill, signal: AbortSignal): Promise<Verdict> {
    if (signal.aborted) return Promise.resolve("fetch");
    this.#waiting++;
    return new Promise((resolve) => {
      const wake: Wake = (verdict) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        fill.waiting.delete(wake);
        this.#waiting--;
        resolve(verdict);
      };
      const onAbort = () => wake("fetch");
      const timer = setTimeout(() => wake("fetch"), MAX_WAIT_MS);
      signal.addEventListener("abort", onAbort);
      fill.waiting.add(wake);
    });
  }

  /** The answer is stored: everybody looks again. */
  stored(fill: Fill): void {
    this.#end(fill);
    for (const wake of [...fill.waiting]) wake("look");
  }

  /** The answer is no good for others: everybody fetches one. */
  useless(fill: Fill): void {
    this.#end(fill);
    for (const wake of [...fill.waiting]) wake("fetch");
  }

  /** The fetch has ended for a reason of its own client's: the first to look again takes its place, and the others wait for it. */
  abandoned(fill: Fill): void {
    this.stored(fill);
  }

  /** No answer that is on its way for these may be stored, and nobody waits for one. */
  outdate(fits: (fill: Fill) => boolean): void {
    for (const fill of this.#all) {
      if (!fits(fill)) continue;
      fill.isOutdated = true;
      if (this.#leading.get(fill.key) === fill) this.#leading.delete(fill.key);
    }
  }

  /** Wakes everybody. */
  close(): void {
    for (const fill of [...this.#all]) this.useless(fill);
  }

  #end(fill: Fill): void {
    this.#all.delete(fill);
    if (this.#leading.get(fill.key) === fill) this.#leading.delete(fill.key);
  }
}
