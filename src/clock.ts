// The time as an interface, so that tests can pass a clock of their own; knows nothing else.

/** Where the program reads the time from. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };
