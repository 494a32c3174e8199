// The messages between the supervisor and one data-plane worker; plain data, no behavior.
import type { Issue } from "../model/error.ts";
import type { HttpEngine } from "../model/listener.ts";
import type { ListenAddress } from "../net/destinations.ts";
import type { LogDirectories } from "../pdk/kit.ts";
import type { CountersCommand } from "../shared-counters/worker-counters.ts";
import type { TrafficMemory } from "../shared-memory/traffic-metrics.ts";
import type { ExplainedRequest, Explanation } from "./explanation.ts";
import type { SnapshotChange, SnapshotPiece } from "./snapshot.ts";

/** First message to a worker: its identity and the shared memory. */
export interface StartCommand {
  readonly kind: "start";
  /** Its place in shared memory, from 0: one of one more than there are workers. */
  readonly worker: number;
  readonly workers: number;
  /** From 1 to twice the number of places: a thread that replaces another has another number, as the owner of locks and memory. */
  readonly thread: number;
  /** Names this gateway in CDN-Loop (RFC 8586), so that two gateways in a row are not a loop. */
  readonly instanceId: string;
  /** Part of the names of the management API's cookies. */
  readonly cookieId: string;
  /** Hashes of the sessions of the management API, whose cookies must not reach a target. */
  readonly sessions: readonly string[];
  /** Signs the cookies of sticky sessions. */
  readonly stickyKey: string;
  /** Keys of plugin instances are derived from it. */
  readonly pluginKey: string;
  /** Where plugins may write files; null: nowhere. */
  readonly logDirectories: LogDirectories | null;
  /** Where long request bodies are buffered. Absent: nowhere. */
  readonly bodyDirectory?: string;
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** Serves all listeners that can do with it. Absent: each has its own. */
  readonly httpEngine?: HttpEngine | null;
  /** Where the management API listens. */
  readonly managementAddresses: readonly ListenAddress[];
  /** The server of shared counters; null: there is none. */
  readonly sharedCounters: CountersCommand | null;
  /** Memory shared by all threads; laid out by shared-memory/. */
  readonly shared: {
    readonly workers: SharedArrayBuffer;
    readonly targets: SharedArrayBuffer;
    readonly counters: SharedArrayBuffer;
    readonly traffic: TrafficMemory;
    /** The same for targets. */
    readonly targetTraffic: TrafficMemory;
    /** Ring for completed requests; null: none. */
    readonly requests: SharedArrayBuffer | null;
  };
  /** Absent: none are open. */
  readonly challenges?: Challenges;
  /** Processor time, in milliseconds, in which a built-in plugin must create an instance. Absent: any, because it was tried before. */
  readonly maxCreateMs?: number;
}

/** Derived from the secret key. */
export type WorkerKeys = Pick<StartCommand, "stickyKey" | "pluginKey">;

/** Responses to ACME challenges while CAs validate names. */
export interface Challenges {
  /** Key authorizations by token (RFC 8555 section 8.3). */
  readonly http: readonly { readonly token: string; readonly answer: string }[];
  /** Certificates for handshakes, PEM, by lower-case name (RFC 8737). */
  readonly tls: readonly { readonly name: string; readonly cert: string; readonly key: string }[];
  /** Lower-case names and patterns: workers report handshakes for them without a certificate. Absent: none. */
  readonly wanted?: readonly string[];
}

/** Questions and commands to a worker that do not concern versions. */
export type WorkerQuestion =
  /** List the connections of a stream route. */
  | { readonly kind: "connections"; readonly streamRouteId: string }
  /** List the WebSockets and other upgraded connections of a route. */
  | { readonly kind: "upgrades"; readonly routeId: string }
  /** Close this connection; the answer: whether it existed. */
  | { readonly kind: "kill"; readonly connectionId: string }
  /** Write all completed requests to the ring; the answer is true. */
  | { readonly kind: "flush" }
  /** Close the connections of routes and targets with these ids; null: all WebSockets. The answer is true. */
  | { readonly kind: "end"; readonly paths: EndedPaths | null }
  /** Replace the challenge responses; the answer is true. */
  | { readonly kind: "challenges"; readonly challenges: Challenges }
  /** Explain how the gateway would handle this request; any worker can answer. */
  | { readonly kind: "explain"; readonly request: ExplainedRequest };

/** Ids of what a version no longer has. */
export interface EndedPaths {
  readonly routes: readonly string[];
  readonly targets: readonly string[];
  readonly streamRoutes: readonly string[];
}

/** A connection of a stream route, as the API shows it. */
export interface StreamConnectionView {
  readonly id: string;
  readonly stream_route_id: string;
  /** `address:port`. */
  readonly client: string;
  readonly target_id: string | null;
  /** Bytes from the client and to the client. */
  readonly bytes_in: number;
  readonly bytes_out: number;
  /** RFC 3339. */
  readonly started_at: string;
}

/** A connection that was upgraded, as the API shows it: a WebSocket or another protocol. */
export interface UpgradedConnectionView {
  readonly id: string;
  readonly route_id: string;
  /** As the client got it in Upgrade; `websocket`. */
  readonly protocol: string;
  /** `address:port`; the address alone where a trusted proxy has named it. */
  readonly client: string;
  readonly target_id: string;
  /** Bytes of frames to the target and from it; those of other protocols as they are. */
  readonly bytes_in: number;
  readonly bytes_out: number;
  /** RFC 3339. */
  readonly started_at: string;
}

/** A list for `connections` and `upgrades`, a boolean for `kill`; null for `explain` while nothing is served. */
export type WorkerAnswer =
  | readonly StreamConnectionView[]
  | readonly UpgradedConnectionView[]
  | boolean
  | Explanation
  | null;

/** How a worker ends. */
export interface Drain {
  /** For requests in flight to end. */
  readonly timeoutMs: number;
  /**
   * Time in which another process or thread that listens on the same ports takes over: responses close connections so that clients
   * reconnect there, and WebSockets stay open until the end. 0: there is none.
   */
  readonly lingerMs: number;
}

export type WorkerCommand =
  | StartCommand
  /** Add this to the next version. */
  | { readonly kind: "take"; readonly revision: number; readonly piece: SnapshotPiece }
  /** Build the next version from the pieces and this, beside the live one, and bind its new listeners. */
  | { readonly kind: "prepare"; readonly change: SnapshotChange }
  /** Serve the prepared version. */
  | { readonly kind: "activate"; readonly revision: number }
  /** Drop the prepared version. */
  | { readonly kind: "discard"; readonly revision: number }
  /** Write completed requests to this ring; null: none. */
  | { readonly kind: "requests"; readonly buffer: SharedArrayBuffer | null }
  /** A session of the management API has begun or ended. */
  | { readonly kind: "session"; readonly hash: string; readonly isLive: boolean }
  /** The management API listens there. */
  | { readonly kind: "management"; readonly addresses: readonly ListenAddress[] }
  /** The next version creates again what was made with other keys. */
  | { readonly kind: "keys"; readonly keys: WorkerKeys }
  /** Answer the question; the answer has the same `ticket`. */
  | { readonly kind: "ask"; readonly ticket: number; readonly question: WorkerQuestion }
  /** Accept neither connections nor requests any more, then send `closed`. `lingerMs`: as in `Drain`. */
  | { readonly kind: "stop_accepting"; readonly lingerMs: number }
  /** The same, then wait for requests in flight and send `stopped`. */
  | ({ readonly kind: "drain" } & Drain);

export type WorkerEvent =
  /** Answer to `take`. */
  | { readonly kind: "taken"; readonly revision: number }
  /** Long work makes progress: extends the timeout of the answer. */
  | { readonly kind: "progress" }
  /** Answer to `prepare`. */
  | { readonly kind: "prepared"; readonly revision: number }
  | { readonly kind: "rejected"; readonly revision: number; readonly issues: readonly Issue[] }
  /** Answer to `activate`. */
  | { readonly kind: "active"; readonly revision: number }
  /** Answer to `discard`: what the version had opened is closed. */
  | { readonly kind: "discarded"; readonly revision: number }
  /** Answer to `ask`. */
  | { readonly kind: "answer"; readonly ticket: number; readonly value: WorkerAnswer }
  /** Answer to `stop_accepting`. */
  | { readonly kind: "closed" }
  /** Answer to `drain`. `aborted`: requests that did not end in time. */
  | { readonly kind: "stopped"; readonly aborted: number }
  /** A client sent a server name without a certificate that could be requested on demand. */
  | { readonly kind: "wanted"; readonly name: string }
  /** Credentials used since the last event. */
  | { readonly kind: "used"; readonly credentialIds: readonly string[] }
  | {
      readonly kind: "log";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
    };

/** What a worker sends on the channel of a feed to get its last message. */
export const FEED_QUESTION = "last?";
