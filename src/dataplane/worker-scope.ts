// What all requests of one worker share; knows no single request.
import type { AbortedRequests } from "./aborted-requests.ts";
import type { OpenChallenges } from "./challenges.ts";
import type { CollectBudget } from "./collecting.ts";
import type { ProxyError } from "./error.ts";
import type { WebSocketProxy } from "./handler.ts";
import type { InFlight } from "./in-flight.ts";
import type { Overload } from "./overload.ts";
import type { PluginPlan } from "../snapshot/snapshot.ts";
import type { Geo } from "./plugin/geo.ts";
import type { Decision } from "./plugin/visit-scene.ts";
import type { RequestContext } from "./request-context.ts";

export interface WorkerScope {
  readonly inFlight: InFlight;
  readonly collectBudget: CollectBudget;
  readonly aborted: AbortedRequests;
  readonly challenges: OpenChallenges;
  readonly overload: Overload;
  /** The one place that logs a failed request. */
  report(context: RequestContext, error: ProxyError): void;
  /** The same for a request that could not be read. */
  reportUnread(id: string, error: ProxyError): void;
  readonly proxyWebSocket: WebSocketProxy;
  /** A request has ended with this status, for the counters. Called exactly once for each. */
  ended(context: RequestContext, status: number): void;
  readonly geo: Geo;
  /** A handler of a plugin failed. */
  pluginFailed(context: RequestContext, plan: PluginPlan, error: unknown): void;
  /** What a plugin has decided, for the counters. */
  readonly decided: (plugin: string, decision: Decision) => void;
}
