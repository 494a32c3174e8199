// How a target is chosen; knows no connection and no request.

/** A target that may be chosen. */
export interface Candidate {
  readonly id: string;
  /** Share of the traffic, above 0. */
  readonly weight: number;
}

export interface Balancer<T extends Candidate> {
  /** The next target, none of those already tried; null when there is none. */
  pick(tried: ReadonlySet<string> | null): T | null;
}
