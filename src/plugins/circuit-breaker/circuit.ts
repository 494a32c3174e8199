// The state of circuits, which all workers share: closed, open until a time, then open for a few; knows no request.
import type { Counters, WindowCount } from "../../pdk/kit.ts";

export interface CircuitOptions {
  readonly error_ratio: number;
  readonly min_requests: number;
  /** Seconds. */
  readonly window: number;
  /** 0: off. */
  readonly consecutive: number;
  /** Part of the requests that must not be slow; null: off. */
  readonly latency_quantile: number | null;
  /** Seconds, doubled each time that it opens again. */
  readonly open_for: number;
  readonly half_open_requests: number;
  readonly close_after: number;
}

/** What a request has learned about the service. */
export interface Experience {
  readonly isFailed: boolean;
  readonly isSlow: boolean;
}

/** A request that was let through; give it back to `ended`. */
export interface Pass {
  readonly key: string;
  readonly state: number;
  readonly isProbe: boolean;
}

export type Phase = "closed" | "half_open" | "open";

/** Longest time that a circuit stays open, unless it begins with more. */
const MOST_OPEN_MS = 300_000;
/** What nobody has used for so long is forgotten. */
const KEEP_MS = 3_600_000;
/** Room for how often it has opened, below the time in one number. */
const LEVELS = 16;
/** So much later than what may come together is no coincidence. */
const ROUNDING = 1e-9;

/**
 * A state is one number, so that it can be changed in one step: 0 or less is closed, and tells one closed time from the next;
 * else it is the time until which it is open, and how often it has opened in a row. What is over is half open.
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

  /** A pass, or the milliseconds until it is worth another try. */
  enter(key: string): Pass | number {
    const counters = this.#counters;
    const state = counters.value(key);
    if (state <= 0) return { key, state, isProbe: false };
    const left = untilOf(state) - counters.now();
    if (left > 0) return left;
    const isFree = counters.enter(probesOf(key), this.#own.half_open_requests);
    return isFree ? { key, state, isProbe: true } : 0;
  }

  /** Null: nothing was learned. */
  ended({ key, state, isProbe }: Pass, experience: Experience | null): void {
    if (isProbe) this.#counters.leave(probesOf(key));
    // What began in another state says nothing about this one.
    if (experience === null || this.#counters.value(key) !== state) return;
    if (isProbe) this.#judgeProbe(key, state, experience);
    else if (this.#trips(key, state, experience)) this.#open(key, state, 0);
  }

  #judgeProbe(key: string, state: number, { isFailed, isSlow }: Experience): void {
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

  #trips(key: string, state: number, { isFailed, isSlow }: Experience): boolean {
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

/** As much of the window before as is less than a window ago, as if it had come evenly. */
const inWindow = ({ current, previous, elapsedMs }: WindowCount, windowMs: number) =>
  current + previous * (1 - elapsedMs / windowMs);

/** For those who look on. */
export function phaseOf(counters: Counters, key: string): Phase {
  const state = counters.value(key);
  if (state <= 0) return "closed";
  return untilOf(state) > counters.now() ? "open" : "half_open";
}
