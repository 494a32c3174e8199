// Fetches in flight: coalescing of requests, and invalidation before the response is stored; knows no request.

/** Result of a wait: look up the cache again, or fetch. */
export type Verdict = "look" | "fetch";

type Wake = (verdict: Verdict) => void;

/** A fetch whose response may be stored. */
export class Fill {
  readonly key: string;
  readonly resource: string;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
  /** The resource was invalidated during the fetch. */
  isInvalidated = false;
  /** Whether other requests may wait for it. */
  isLeading: boolean;
  readonly waiting = new Set<Wake>();

  constructor(target: { readonly key: string; readonly resource: string }, isLeading: boolean) {
    this.key = target.key;
    this.resource = target.resource;
    this.startedAt = performance.now();
    this.isLeading = isLeading;
  }
}

/** Longest wait for another request's fetch. */
const MAX_WAIT_MS = 30_000;

/** Waiting requests of one worker; further ones fetch. */
const MAX_WAITING = 10_000;

export class Fills {
  readonly #all = new Set<Fill>();
  /** The fetches to wait for, by key. */
  readonly #leading = new Map<string, Fill>();
  #waiting = 0;

  /** The fetch to wait for; null: there is none, or it has taken too long. */
  leaderOf(key: string): Fill | null {
    const fill = this.#leading.get(key);
    if (fill === undefined || this.#waiting >= MAX_WAITING) return null;
    return performance.now() - fill.startedAt < MAX_WAIT_MS ? fill : null;
  }

  /** Begins a fetch; it becomes the leader if there is none and `mayLead`. */
  begin(target: { readonly key: string; readonly resource: string }, mayLead: boolean): Fill {
    const fill = new Fill(target, mayLead && this.leaderOf(target.key) === null);
    this.#all.add(fill);
    if (fill.isLeading) this.#leading.set(fill.key, fill);
    return fill;
  }

  /** Resolves when the fetch has ended, the client disconnects, or the wait times out. */
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

  /** The response is stored: waiting requests look it up. */
  stored(fill: Fill): void {
    this.#end(fill);
    for (const wake of [...fill.waiting]) wake("look");
  }

  /** The response cannot be shared: waiting requests fetch. */
  uncacheable(fill: Fill): void {
    this.#end(fill);
    for (const wake of [...fill.waiting]) wake("fetch");
  }

  /** The fetch ended because of its client: the first request to look up becomes the leader, the others wait for it. */
  abandoned(fill: Fill): void {
    this.stored(fill);
  }

  /** Keeps responses of these fetches from being stored, and new requests from waiting for them. */
  invalidate(fits: (fill: Fill) => boolean): void {
    for (const fill of this.#all) {
      if (!fits(fill)) continue;
      fill.isInvalidated = true;
      if (this.#leading.get(fill.key) === fill) this.#leading.delete(fill.key);
    }
  }

  /** Releases all waiting requests. */
  close(): void {
    for (const fill of [...this.#all]) this.uncacheable(fill);
  }

  #end(fill: Fill): void {
    this.#all.delete(fill);
    if (this.#leading.get(fill.key) === fill) this.#leading.delete(fill.key);
  }
}
