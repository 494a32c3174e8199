// The services that all requests of one worker share; knows no single request.
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type { AbortedRequests } from "./aborted-requests.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import type { OpenChallenges } from "./challenges.ts";
import type { LogLine } from "./data-plane.ts";
import type { InFlight } from "./in-flight.ts";
import type { RequestBuffers } from "./request-buffers.ts";
import type { Overload } from "./overload.ts";
import type { Geo } from "./plugin/geo.ts";
import type { TrafficRecorder } from "./traffic-recorder.ts";
import type { WebSockets } from "./websocket/sessions.ts";

export interface WorkerServices {
  /** Index of this worker, from 0. */
  readonly index: number;
  readonly board: WorkerBoard;
  /** One number: the board's `pressure`. */
  readonly pressure: Float64Array;
  /** One number: the board's `requests_total` of this worker. */
  readonly requestsTotal: Float64Array;
  readonly targets: TargetBoard;
  readonly log: LogLine;
  readonly inFlight: InFlight;
  readonly bufferBudget: BufferBudget;
  readonly requestBuffers: RequestBuffers;
  readonly aborted: AbortedRequests;
  readonly challenges: OpenChallenges;
  readonly overload: Overload;
  readonly recorder: TrafficRecorder;
  readonly webSockets: WebSockets;
  readonly geo: Geo;
}
