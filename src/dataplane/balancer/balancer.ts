// How a target is chosen; knows no connection and no request.

/** A target that may be chosen. */
export interface Candidate {
  readonly id: string;
  /** Share of the traffic, above 0. */
  readonly weight: number;
}

/** What is known of candidates at the moment of choosing, over all workers. */
export interface Load<T extends Candidate> {
  /** Requests in flight. */
  active(candidate: T): number;
  /** Average time to the response head in microseconds; 0: none known. */
  latency(candidate: T): number;
  /** Part of the weight that counts now, above 0 and at most 1: less than 1 while a target starts slowly. */
  warmth(candidate: T): number;
  /** Whether it takes no more requests. */
  isFull(candidate: T): boolean;
  /** The number of this turn: 0, 1, 2 and so on over all workers. */
  nextTurn(): number;
  /** From 0 to below 1. */
  random(): number;
}

/** What a request brings along. */
export interface PickRequest {
  /** 32 bits of what `hash_on` names; null when there is nothing to hash. */
  readonly key: number | null;
  /** Targets that have failed this request already. */
  readonly tried: ReadonlySet<string> | null;
}

export interface Balancer<T extends Candidate> {
  /** The target to use, none of those already tried and none that is full; null when there is none. */
  pick(request: PickRequest): T | null;
}

/** Whether a candidate may take this request at all. */
export function isOpen<T extends Candidate>(
  candidate: T,
  load: Load<T>,
  tried: ReadonlySet<string> | null,
): boolean {
  return (tried === null || !tried.has(candidate.id)) && !load.isFull(candidate);
}

/** The first that is open, from `start` on and around. */
export function firstOpen<T extends Candidate>(
  candidates: readonly T[],
  start: number,
  is: (candidate: T) => boolean,
): T | null {
  for (let step = 0; step < candidates.length; step++) {
    const candidate = candidates[(start + step) % candidates.length];
    if (candidate !== undefined && is(candidate)) return candidate;
  }
  return null;
}
