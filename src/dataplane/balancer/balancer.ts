// The contract of load balancing algorithms; knows no connection and no request.

/** A target to select from. */
export interface BalancerTarget {
  readonly id: string;
  /** Share of the traffic, above 0. */
  readonly weight: number;
}

/** The current state of candidates, over all workers. */
export interface Load<T extends BalancerTarget> {
  /** Requests in flight. */
  active(candidate: T): number;
  /** Average time to the response head in microseconds; 0: unknown. */
  latency(candidate: T): number;
  /** Part of the weight that counts now, above 0 and at most 1: below 1 during a slow start. */
  slowStartFactor(candidate: T): number;
  /** Whether it has reached `max_connections_per_target`. */
  isFull(candidate: T): boolean;
  /** The number of this turn: 0, 1, 2 … over all workers. */
  nextTurn(): number;
  /** From 0 to below 1. */
  random(): number;
}

/** The request to select a target for. */
export interface PickRequest {
  /** 32 bits of what `hash_on` names; null when there is nothing to hash. */
  readonly key: number | null;
  /** Targets that have failed this request. */
  readonly tried: ReadonlySet<string> | null;
}

export interface Balancer<T extends BalancerTarget> {
  /** Selects a target that was not tried and is not full; null when there is none. */
  pick(request: PickRequest): T | null;
}

/** Whether the candidate was not tried and is not full. */
export function isEligible<T extends BalancerTarget>(
  candidate: T,
  load: Load<T>,
  tried: ReadonlySet<string> | null,
): boolean {
  return (tried === null || !tried.has(candidate.id)) && !load.isFull(candidate);
}

/** The first eligible candidate from `start` on, cyclically. */
export function firstEligible<T extends BalancerTarget>(
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
