// The data plane of one worker as the worker loop sees it: versions come in, traffic is served; knows nothing of threads.
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Issue } from "../model/error.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type { Drain, WorkerAnswer, WorkerQuestion } from "../snapshot/message.ts";
import type { CounterTable } from "../shared-memory/counter-table.ts";
import type { LogPlaces } from "../pdk/kit.ts";
import type { Pace } from "../pace.ts";
import type { PluginSource } from "../pdk/catalogue.ts";
import type { SnapshotChange, SnapshotPiece } from "../snapshot/snapshot.ts";
import type { TrafficRecorder } from "./traffic-recorder.ts";
import type { WebSocketTimeouts } from "./websocket/sessions.ts";

/** Writes one structured line to the gateway's log. */
export type LogLine = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

export interface DataPlaneOptions {
  /** Index of this worker, from 0. */
  readonly worker: number;
  /** How many workers there are; default 1. */
  readonly workers?: number;
  readonly instanceId: string;
  /** Neither reach targets nor come from them. */
  readonly managementCookies: ManagementCookies;
  readonly board: WorkerBoard;
  /** Health and load of targets, shared by all workers. */
  readonly targets: TargetBoard;
  /** Counts what is served. Default: counts that nobody reads. */
  readonly recorder?: TrafficRecorder;
  /** Signs the cookies that keep clients on a target; the same in all workers. */
  readonly stickyKey: string;
  readonly log: LogLine;
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** All plugins that there are. */
  readonly plugins: PluginSource;
  /** Keys of plugin instances are derived from it; the same in all workers. */
  readonly pluginKey: string;
  /** Numbers of plugins, shared by all workers; absent: this data plane has its own. */
  readonly counters?: CounterTable;
  /** Where plugins may write files; absent: nowhere. */
  readonly logPlaces?: LogPlaces | null;
  /** Credentials were used, told every few seconds. */
  readonly used?: (credentialIds: readonly string[]) => void;
  /** A client has asked for a name that a certificate could be ordered for. Default: nobody wants to know. */
  readonly wanted?: (name: string) => void;
  /** Cuts the work on versions into slices, so that requests are served between them. Default: one of its own. */
  readonly pace?: Pace;
  /** What differs from the product's times. */
  readonly webSocketTimeouts?: WebSocketTimeouts | undefined;
}

export interface DataPlane {
  /** Takes a part of the next version in. */
  take(revision: number, piece: SnapshotPiece): Promise<void>;
  /**
   * Builds the next version beside the live one, of the pieces that were taken and of this, and binds its new listeners; the
   * issues say why it cannot be served.
   */
  prepare(change: SnapshotChange): Promise<readonly Issue[]>;
  /** Serves the prepared version, in one step; what is gone drains. Throws when that revision was not prepared. */
  activate(revision: number): Promise<void>;
  /** Forgets the prepared version and closes what was bound for it. */
  discard(revision: number): void;
  /** Answers a question about the present. */
  answer(question: WorkerQuestion): WorkerAnswer;
  /** Gives back what the process is short of, and takes up again what stopped for it; to be called a few times a second. */
  relieve(): void;
  /** Stops accepting and waits for requests in flight; returns how many did not end in time and were cut. */
  drain(drain: Drain): Promise<number>;
}
