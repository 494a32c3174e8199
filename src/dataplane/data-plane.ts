// The contract between the worker loop and the data plane of one worker: versions and questions; knows nothing of threads.
import type { ListenAddress } from "../net/destinations.ts";
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Issue } from "../model/error.ts";
import type { HttpEngine } from "../model/listener.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type { Drain, WorkerAnswer, WorkerKeys, WorkerQuestion } from "../snapshot/message.ts";
import type { CounterTable } from "../shared-memory/counter-table.ts";
import type { LogDirectories } from "../pdk/kit.ts";
import type { WorkerCounters } from "../shared-counters/worker-counters.ts";
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
  /** As in `StartCommand`. Default: `worker` + 1. */
  readonly thread?: number;
  /** Number of workers; default 1. */
  readonly workers?: number;
  readonly instanceId: string;
  /** Hidden from targets; targets cannot set them. */
  readonly managementCookies: ManagementCookies;
  readonly board: WorkerBoard;
  /** Health and load of targets, shared by all workers. */
  readonly targets: TargetBoard;
  /** Default: a recorder of its own. */
  readonly recorder?: TrafficRecorder;
  /** Signs sticky cookies; the same in all workers. */
  readonly stickyKey: string;
  readonly log: LogLine;
  /** Name servers for target names; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** As in `StartCommand`. */
  readonly httpEngine?: HttpEngine | null;
  /** Where the management API listens: nothing of this gateway connects there. Default: unknown. */
  readonly managementAddresses?: readonly ListenAddress[];
  /** All plugin types. */
  readonly plugins: PluginSource;
  /** The key that those of plugin instances are derived from; the same in all workers. */
  readonly pluginKey: string;
  /** As in `StartCommand`. Default: any. */
  readonly maxCreateMs?: number | null;
  /** Counters of plugins, shared by all workers; absent: this data plane has its own. */
  readonly counters?: CounterTable;
  /** Counters of plugins over all nodes; absent: there are none. */
  readonly sharedCounters?: WorkerCounters | null;
  /** Where plugins may write files; absent: nowhere. */
  readonly logDirectories?: LogDirectories | null;
  /** Where long request bodies are buffered; absent: nowhere. */
  readonly bodyDirectory?: string | null;
  /** Reports used credentials every few seconds. */
  readonly used?: (credentialIds: readonly string[]) => void;
  /** A client uses a TLS server name whose certificate can be issued on demand. Default: ignored. */
  readonly onUnknownName?: (name: string) => void;
  /** Slices the work on versions, so that the worker serves requests in between. Default: one of its own. */
  readonly pace?: Pace;
  /** Overrides of the built-in timeouts. */
  readonly webSocketTimeouts?: WebSocketTimeouts | undefined;
}

export interface DataPlane {
  /** Adds a part of the next version. */
  take(revision: number, piece: SnapshotPiece): Promise<void>;
  /**
   * Builds the next version beside the live one, of all pieces and the change, and binds its new listeners; the
   * issues say why it cannot be served.
   */
  prepare(change: SnapshotChange): Promise<readonly Issue[]>;
  /** Switches to the prepared version in one step; replaced parts drain. Throws when that revision was not prepared. */
  activate(revision: number): Promise<void>;
  /** Drops the prepared version and closes what was bound for it. */
  discard(revision: number): void;
  /** Answers a question about the live state. */
  answer(question: WorkerQuestion): WorkerAnswer;
  /** The next version creates again what was made with other keys. */
  useKeys(keys: WorkerKeys): void;
  /** The management API listens there now. */
  useManagement(addresses: readonly ListenAddress[]): void;
  /** Reacts to the pressure on memory and descriptors: sheds, pauses or resumes. Call it a few times a second. */
  relieve(): void;
  /** Resolves when this thread accepts neither connections nor requests on those that it has. `lingerMs`: as in `Drain`. */
  stopAccepting(lingerMs: number): Promise<void>;
  /** Stops accepting and waits for requests in flight; resolves with the number of those aborted at the timeout. */
  drain(drain: Drain): Promise<number>;
}
