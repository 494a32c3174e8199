// What all requests of one worker share; knows no single request.
import type { AbortedRequests } from "./aborted-requests.ts";
import type { CollectBudget } from "./collecting.ts";
import type { ProxyError } from "./error.ts";
import type { WebSocketProxy } from "./handler.ts";
import type { InFlight } from "./in-flight.ts";
import type { RequestContext } from "./request-context.ts";

export interface WorkerScope {
  readonly inFlight: InFlight;
  readonly collectBudget: CollectBudget;
  readonly aborted: AbortedRequests;
  /** The one place that logs a failed request. */
  report(context: RequestContext, error: ProxyError): void;
  /** The same for a request that could not be read. */
  reportUnread(id: string, error: ProxyError): void;
  readonly proxyWebSocket: WebSocketProxy;
  /** A request has ended, for the counters. Called exactly once for each. */
  ended(context: RequestContext): void;
}
