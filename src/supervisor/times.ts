// How long the supervisor waits for what; knows nothing of why.

/** All in milliseconds. */
export interface SupervisorTimes {
  /** For a new worker to listen. */
  readonly startMs: number;
  /** For a worker to answer `prepare`. */
  readonly prepareMs: number;
  /** For a worker to answer `activate`. */
  readonly activateMs: number;
  /** For a worker that was replaced during `activate` to listen. */
  readonly replaceMs: number;
  /** A ready worker that is silent for longer is taken for stuck. */
  readonly silentMs: number;
  /** First and longest pause before a worker that ended is started again. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** A worker that served for this long starts again after the first pause. */
  readonly healthyMs: number;
}

export const defaultTimes: SupervisorTimes = {
  startMs: 60_000,
  prepareMs: 10_000,
  activateMs: 2_000,
  replaceMs: 10_000,
  silentMs: 5_000,
  firstPauseMs: 100,
  longestPauseMs: 5_000,
  healthyMs: 10_000,
};
