// Fetches of one worker whose responses may be stored, and requests that wait for fetches of any worker; knows no request.
import type { CacheFlight, CacheStore, FlightVerdict } from "../../pdk/cache-store.ts";

/** What a fetch is for. */
interface Target {
  /** Requests with the same key may wait for it. */
  readonly key: string;
  readonly resource: string;
  /** `CacheStore.epoch` from before the fetch. */
  readonly epoch: number;
}

type Wake = (verdict: FlightVerdict) => void;

/** A fetch whose response may be stored. */
export interface Fill {
  /** Null: no request waits for it. */
  readonly flight: CacheFlight | null;
}

/** Longest wait for another request's fetch. */
const MAX_WAIT_MS = 30_000;

/** Waiting requests of one worker; further ones fetch. */
const MAX_WAITING = 10_000;

/** The flights of all workers. */
type Flights = Pick<CacheStore<never>, "lead" | "follow">;

const ALONE: Fill = { flight: null };

export class Fills {
  readonly #flights: Flights;
  /** Those with a flight. */
  readonly #leading = new Set<Fill>();
  /** The requests of this worker that wait for a fetch, by its end. */
  readonly #waiting = new Map<Promise<FlightVerdict>, Set<Wake>>();
  #waitingCount = 0;

  constructor(flights: Flights) {
    this.#flights = flights;
  }

  /** A fetch for which no request waits. */
  alone(): Fill {
    return ALONE;
  }

  /** A fetch that leads; null: another one does, in whatever worker, or there is no room. */
  lead({ key, resource, epoch }: Target): Fill | null {
    const flight = this.#flights.lead(key, resource, epoch);
    if (flight === null) return null;
    const fill = { flight };
    this.#leading.add(fill);
    return fill;
  }

  /** The end of the fetch that leads, for `wait`; or a fetch of this request, which leads if there is room. */
  join(target: Target): Fill | Promise<FlightVerdict> {
    // Between the two steps another worker's fetch may begin to lead, and end.
    for (let attempt = 0; attempt < 2; attempt++) {
      const joined = this.#leaderOf(target) ?? this.lead(target);
      if (joined !== null) return joined;
    }
    return this.alone();
  }

  #leaderOf({ key, resource }: Target): Promise<FlightVerdict> | null {
    if (this.#waitingCount >= MAX_WAITING) return null;
    return this.#flights.follow(key, resource, MAX_WAIT_MS);
  }

  /** Resolves when the fetch has ended, the client disconnects, or the wait times out. */
  wait(end: Promise<FlightVerdict>, signal: AbortSignal): Promise<FlightVerdict> {
    if (signal.aborted) return Promise.resolve("fetch");
    const waiting = this.#waitingFor(end);
    this.#waitingCount++;
    return new Promise((resolve) => {
      const wake: Wake = (verdict) => {
        signal.removeEventListener("abort", onAbort);
        waiting.delete(wake);
        this.#waitingCount--;
        resolve(verdict);
      };
      const onAbort = () => wake("fetch");
      signal.addEventListener("abort", onAbort);
      waiting.add(wake);
    });
  }

  /** One set for each end, so that a request that stops waiting leaves nothing behind. */
  #waitingFor(end: Promise<FlightVerdict>): Set<Wake> {
    const known = this.#waiting.get(end);
    if (known !== undefined) return known;
    const waiting = new Set<Wake>();
    this.#waiting.set(end, waiting);
    void end.then((verdict) => {
      this.#waiting.delete(end);
      for (const wake of [...waiting]) wake(verdict);
    });
    return waiting;
  }

  /** The response is stored: waiting requests look it up. */
  stored(fill: Fill): void {
    this.#end(fill, "look");
  }

  /** The response cannot be shared: waiting requests fetch. */
  uncacheable(fill: Fill): void {
    this.#end(fill, "fetch");
  }

  /** The fetch ended because of its client: the first request to look up becomes the leader, the others wait for it. */
  abandoned(fill: Fill): void {
    this.#end(fill, "look");
  }

  /** Releases all waiting requests of this worker, and those of others that wait for its fetches. */
  close(): void {
    for (const fill of this.#leading) this.uncacheable(fill);
    for (const waiting of this.#waiting.values()) for (const wake of [...waiting]) wake("fetch");
  }

  #end(fill: Fill, verdict: FlightVerdict): void {
    fill.flight?.end(verdict);
    this.#leading.delete(fill);
  }
}
