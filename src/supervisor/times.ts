// Timeouts of the supervisor; knows nothing of their use.

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
  /** The supervisor replaces a ready worker without a heartbeat for longer. */
  readonly silentMs: number;
  /** First and longest pause before a stopped worker restarts. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** A worker that served for this long restarts after the first pause. */
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
