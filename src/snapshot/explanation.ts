// The request of "explain" and how a worker would handle it; plain data.
import type { HttpEngine } from "../model/listener.ts";
import type { Route } from "../model/route.ts";

/** A hypothetical request. */
export interface ExplainedRequest {
  readonly method: string;
  /** Absolute, http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Address of the connection. */
  readonly clientIp: string;
}

/** What the gateway would do. `refused`: it responds before matching routes, or rejects the request itself. */
export type ExplainedOutcome =
  | "proxy"
  | "websocket"
  | "upgrade"
  | "redirect"
  | "maintenance"
  | "default_site"
  | "unavailable"
  | "refused";

/** A request with the field Upgrade. */
export interface ExplainedUpgrade {
  /** `websocket`, or those that the target may choose from; null: it is forwarded without Upgrade. */
  readonly protocols: string | null;
  /** Why it is forwarded without Upgrade; else null. */
  readonly reason: string | null;
}

export interface ExplainedTarget {
  readonly targetId: string;
  /** URL of the request to the target. */
  readonly url: string;
  /** The Host header field. */
  readonly host: string;
}

export interface ExplainedCandidate {
  readonly routeId: string;
  /** Position in the order in which routes are tried, from 1. */
  readonly position: number;
  /** The first condition that the request does not meet, as text; null: it meets all. */
  readonly reason: string | null;
}

/** A plugin instance that applies to the request. */
export interface ExplainedPlugin {
  readonly id: string;
  /** In the order in which it runs. */
  readonly phases: readonly string[];
  /** Whether its condition holds; null: that depends on the identity of the client. */
  readonly applies: boolean | null;
}

export interface Explanation {
  /** The listener of the request; null: none has its scheme. */
  readonly listenerId: string | null;
  /** What serves the listener in this worker; null: it has no socket. */
  readonly engine: HttpEngine | null;
  readonly routeId: string | null;
  /** Of the route; null: none matches. */
  readonly pathHandling: Route["path_handling"] | null;
  readonly serviceId: string | null;
  readonly outcome: ExplainedOutcome;
  /** Of a local response; 0 for a proxied request. */
  readonly status: number;
  /** Reason of a refusal or failure, or the redirect location. */
  readonly detail: string | null;
  /** Null: the request asks for no upgrade, or does not reach a target. */
  readonly upgrade: ExplainedUpgrade | null;
  /** Empty unless the request is proxied. */
  readonly targets: readonly ExplainedTarget[];
  /** The closest candidates, in the order in which they are tried. */
  readonly candidates: readonly ExplainedCandidate[];
  /** In the order in which they run. */
  readonly plugins: readonly ExplainedPlugin[];
  /** Total number of routes. */
  readonly routes: number;
}
