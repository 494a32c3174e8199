// The state of circuits, which all workers share: closed, open until a time, then half open; knows no request.
import type { Counters, WindowCount } from "../../pdk/kit.ts";

export interface CircuitOptions {
  readonly error_ratio: number;
  readonly min_requests: number;
  /** Seconds. */
  readonly window: number;
  /** 0: off. */
  readonly consecutive: number;
  /** Share of the requests that must not be slow; null: off. */
  readonly latency_quantile: number | null;
  /** Seconds, doubled each time it opens again. */
  readonly open_for: number;
  readonly half_open_requests: number;
  readonly close_after: number;
}

/** The result of a request, as it concerns the service. */
export interface RequestOutcome {
  readonly isFailed: boolean;
  readonly isSlow: boolean;
}

/** An admitted request; pass it to `ended`. */
export interface Pass {
  readonly key: string;
  readonly state: number;
  readonly isProbe: boolean;
}

export type Phase = "closed" | "half_open" | "open";

/** Longest time that a circuit stays open, unless the setting is longer. */
const MOST_OPEN_MS = 300_000;
/** Circuits expire when unused for so long. */
const KEEP_MS = 3_600_000;
/** The lower digits of the number hold how often the circuit has opened. */
const LEVELS = 16;
/** Tolerance for rounding errors of the shares. */
const ROUNDING = 1e-9;

/**
 * The state is one number, so that it changes atomically: 0 or less is closed, with a different number for each closed period;
 * otherwise it is the time until which the circuit is open, and how often it has opened in a row. After that time it is half open.
 */
export class Circuits {
  readonly #own: CircuitOptions;
  readonly #counters: Counters;
  readonly #changed: (key: string, phase: "opened" | "closed") => void;

  constructor(
    own: CircuitOptions,
    counters: Counters,
    changed: (key: string, phase: "opened" | "closed") => void,
  ) {
    this.#own = own;
    this.#counters = counters;
    this.#changed = changed;
  }

  /** A pass, or the milliseconds until the next probe. */
  enter(key: string): Pass | number {
    const counters = this.#counters;
    const state = counters.value(key);
    if (state <= 0) return { key, state, isProbe: false };
    const left = untilOf(state) - counters.now();
    if (left > 0) return left;
    const isFree = counters.enter(probesOf(key), this.#own.half_open_requests);
    return isFree ? { key, state, isProbe: true } : 0;
  }

  /** Null: no result. */
  ended({ key, state, isProbe }: Pass, outcome: RequestOutcome | null): void {
    if (isProbe) this.#counters.leave(probesOf(key));
    // A request that was admitted in another state does not count in this one.
    if (outcome === null || this.#counters.value(key) !== state) return;
    if (isProbe) this.#judgeProbe(key, state, outcome);
    else if (this.#trips(key, state, outcome)) this.#open(key, state, 0);
  }

  #judgeProbe(key: string, state: number, { isFailed, isSlow }: RequestOutcome): void {
    if (isFailed || isSlow) {
      this.#open(key, state, Math.min(LEVELS - 1, (state % LEVELS) + 1));
      return;
    }
    const { current } = this.#counters.add(`good ${state} ${key}`, 1, KEEP_MS);
    if (current < this.#own.close_after) return;
    const next = -this.#counters.now();
    if (this.#counters.replace(key, { expected: state, next, keepMs: KEEP_MS }))
      this.#changed(key, "closed");
  }

  #trips(key: string, state: number, { isFailed, isSlow }: RequestOutcome): boolean {
    const { consecutive, window, min_requests, error_ratio, latency_quantile } = this.#own;
    const windowMs = window * 1000;
    const count = (what: string, isOne: boolean) =>
      inWindow(this.#counters.add(`${what} ${state} ${key}`, isOne ? 1 : 0, windowMs), windowMs);
    if (consecutive > 0 && this.#inARow(key, state, isFailed) >= consecutive) return true;
    const all = count("all", true);
    const failed = count("failed", isFailed);
    const slow = latency_quantile === null ? 0 : count("slow", isSlow);
    if (all + ROUNDING < min_requests) return false;
    if (failed > 0 && failed / all + ROUNDING >= error_ratio) return true;
    return latency_quantile !== null && slow / all > 1 - latency_quantile + ROUNDING;
  }

  #inARow(key: string, state: number, isFailed: boolean): number {
    const name = `row ${state} ${key}`;
    if (isFailed) return this.#counters.add(name, 1, KEEP_MS).current;
    const { current } = this.#counters.add(name, 0, KEEP_MS);
    if (current > 0) this.#counters.add(name, -current, KEEP_MS);
    return 0;
  }

  #open(key: string, state: number, level: number): void {
    const first = this.#own.open_for * 1000;
    const openMs = Math.min(Math.max(MOST_OPEN_MS, first), first * 2 ** level);
    const until = Math.ceil(this.#counters.now() + openMs);
    const next = until * LEVELS + level;
    if (this.#counters.replace(key, { expected: state, next, keepMs: openMs + KEEP_MS }))
      this.#changed(key, "opened");
  }
}

const untilOf = (state: number) => Math.floor(state / LEVELS);

const probesOf = (key: string) => `probes ${key}`;

/** The previous window in proportion to its overlap, as if evenly spread. */
const inWindow = ({ current, previous, elapsedMs }: WindowCount, windowMs: number) =>
  current + previous * (1 - elapsedMs / windowMs);

/** For metrics. */
export function phaseOf(counters: Counters, key: string): Phase {
  const state = counters.value(key);
  if (state <= 0) return "closed";
  return untilOf(state) > counters.now() ? "open" : "half_open";
}
