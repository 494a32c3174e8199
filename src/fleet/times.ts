// How long the nodes of a fleet wait for each other and for the database.

/** Times in milliseconds. */
export interface FleetTimes {
  /** Between two heartbeats. Default 500. */
  readonly beat: number;
  /** The same while the database sends no notifications. Default 250. */
  readonly poll: number;
  /** After this time without a heartbeat a node counts as away: changes do not wait for it. Default 5000. */
  readonly away: number;
  /** A change waits so long for the other nodes. Default 2000. */
  readonly wait: number;
  /** A change that cannot be served here is tried again after this time, and with the next change. Default 3000. */
  readonly retry: number;
  /** Between two looks at what can be removed from the log. Default 60,000. */
  readonly prune: number;
  /** How long a change waits for the outcome of an append whose response was lost. Default 800. */
  readonly doubt: number;
}

export const defaultTimes: FleetTimes = {
  beat: 500,
  poll: 250,
  away: 5000,
  wait: 2000,
  retry: 3000,
  prune: 60_000,
  doubt: 800,
};
