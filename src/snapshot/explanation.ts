// What a worker is asked about one request and what it says would become of it; plain data.

/** A request that is not made. */
export interface ExplainedRequest {
  readonly method: string;
  /** Absolute, http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Address of the connection. */
  readonly clientIp: string;
}

/** What the gateway would do. `refused`: answered before any route is looked for, or for what the request itself is. */
export type ExplainedOutcome =
  "proxy" | "websocket" | "redirect" | "maintenance" | "default_site" | "unavailable" | "refused";

export interface ExplainedTarget {
  readonly targetId: string;
  /** Where the request would go. */
  readonly url: string;
  /** The Host that it would have. */
  readonly host: string;
}

export interface ExplainedCandidate {
  readonly routeId: string;
  /** Place in the order in which routes are tried, from 1. */
  readonly position: number;
  /** The first condition that the request does not meet, in words; null: it meets all. */
  readonly reason: string | null;
}

/** An instance of a plugin that is there for the request. */
export interface ExplainedPlugin {
  readonly id: string;
  /** In the order in which it runs. */
  readonly phases: readonly string[];
  /** Whether its condition holds; null: that depends on who the client is. */
  readonly applies: boolean | null;
}

export interface Explanation {
  /** Through which the request would come; null: none speaks its scheme. */
  readonly listenerId: string | null;
  readonly routeId: string | null;
  readonly serviceId: string | null;
  readonly outcome: ExplainedOutcome;
  /** Of an answer that the gateway gives itself; 0 for a request that is passed on. */
  readonly status: number;
  /** Why it is refused or cannot be served, or where it is redirected to. */
  readonly detail: string | null;
  /** Empty unless the request is passed on. */
  readonly targets: readonly ExplainedTarget[];
  /** Those that came closest, in the order in which they are tried. */
  readonly candidates: readonly ExplainedCandidate[];
  /** In the order in which they run. */
  readonly plugins: readonly ExplainedPlugin[];
  /** How many routes there are. */
  readonly routes: number;
}
