// The messages between the supervisor and one data-plane worker; plain data, no behaviour.
import type { Issue } from "../model/error.ts";
import type { Purge } from "../pdk/definition.ts";
import type { LogDirectories } from "../pdk/kit.ts";
import type { TrafficMemory } from "../shared-memory/traffic-metrics.ts";
import type { ExplainedRequest, Explanation } from "./explanation.ts";
import type { SnapshotChange, SnapshotPiece } from "./snapshot.ts";

/** First message to a worker: who it is and what it shares. */
export interface StartCommand {
  readonly kind: "start";
  readonly worker: number;
  readonly workers: number;
  /** Names this gateway in CDN-Loop, so that two gateways in a row are not taken for a loop. */
  readonly instanceId: string;
  /** Hashes of the sessions of the management API, whose cookies must not reach a target. */
  readonly sessions: readonly string[];
  /** Signs the cookies that keep clients on a target. */
  readonly stickyKey: string;
  /** Keys of plugin instances are derived from it. */
  readonly pluginKey: string;
  /** Where plugins may write files; null: nowhere. */
  readonly logDirectories: LogDirectories | null;
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** Memory shared by all threads; laid out by shared-memory/. */
  readonly shared: {
    readonly workers: SharedArrayBuffer;
    readonly targets: SharedArrayBuffer;
    readonly counters: SharedArrayBuffer;
    readonly traffic: TrafficMemory;
    /** The same for targets. */
    readonly targetTraffic: TrafficMemory;
    /** Null: requests are not written down. */
    readonly requests: SharedArrayBuffer | null;
  };
  /** Absent: none are open. */
  readonly challenges?: Challenges;
}

/** What certificate authorities are shown while they check that names are ours. */
export interface Challenges {
  /** Answers to requests, by token (RFC 8555 section 8.3). */
  readonly http: readonly { readonly token: string; readonly answer: string }[];
  /** Certificates for handshakes, PEM, by lower-case name (RFC 8737). */
  readonly tls: readonly { readonly name: string; readonly cert: string; readonly key: string }[];
  /** Lower-case names and patterns: handshakes for them are reported when no certificate is there. Absent: none. */
  readonly wanted?: readonly string[];
}

/** What a worker is asked beside its versions. */
export type WorkerQuestion =
  /** Which connections does a stream route have? */
  | { readonly kind: "connections"; readonly streamRouteId: string }
  /** Cut this connection; the answer says whether it was there. */
  | { readonly kind: "kill"; readonly connectionId: string }
  /** Forget stored answers, of one instance of a plugin or of all; the answer is how many there were. */
  | { readonly kind: "purge"; readonly pluginId: string | null; readonly which: Purge }
  /** Write down all requests that have ended, so that they can be read; the answer is true. */
  | { readonly kind: "flush" }
  /** Show authorities this from now on, and nothing else; the answer is true. */
  | { readonly kind: "challenges"; readonly challenges: Challenges }
  /** What would become of this request? Any one worker can tell. */
  | { readonly kind: "explain"; readonly request: ExplainedRequest };

/** A connection of a stream route as people see it. */
export interface StreamConnectionView {
  readonly id: string;
  readonly stream_route_id: string;
  /** `address:port`. */
  readonly client: string;
  readonly target_id: string | null;
  /** Bytes from the client and to it. */
  readonly bytes_in: number;
  readonly bytes_out: number;
  /** RFC 3339. */
  readonly started_at: string;
}

/** A list for `connections`, a truth for `kill`, a number for `purge`; null for `explain` while nothing is served. */
export type WorkerAnswer = readonly StreamConnectionView[] | boolean | number | Explanation | null;

/** How a worker ends. */
export interface Drain {
  /** For what is under way to end. */
  readonly timeoutMs: number;
  /**
   * For how long another process that listens at the same ports gets all the time it wants: answers send clients there, and
   * WebSockets go on until the end. 0: there is no other process.
   */
  readonly lingerMs: number;
}

export type WorkerCommand =
  | StartCommand
  /** Take this into the next version. */
  | { readonly kind: "take"; readonly revision: number; readonly piece: SnapshotPiece }
  /** Build the next version beside the live one, of the pieces that were taken and this, and bind its new listeners. */
  | { readonly kind: "prepare"; readonly change: SnapshotChange }
  /** Serve the prepared version. */
  | { readonly kind: "activate"; readonly revision: number }
  /** Forget the prepared version. */
  | { readonly kind: "discard"; readonly revision: number }
  /** Write requests down in this memory from here on; null: nowhere. */
  | { readonly kind: "requests"; readonly buffer: SharedArrayBuffer | null }
  /** A session of the management API has begun or ended. */
  | { readonly kind: "session"; readonly hash: string; readonly isLive: boolean }
  /** Say something about the present, or do something to it; `ticket` comes back with the answer. */
  | { readonly kind: "ask"; readonly ticket: number; readonly question: WorkerQuestion }
  /** Stop accepting, let what is under way end, then say `stopped`. */
  | ({ readonly kind: "drain" } & Drain);

export type WorkerEvent =
  /** Answer to `take`. */
  | { readonly kind: "taken"; readonly revision: number }
  /** Long work is making progress: extends the time within which the response must come. */
  | { readonly kind: "progress" }
  /** Answer to `prepare`. */
  | { readonly kind: "prepared"; readonly revision: number }
  | { readonly kind: "rejected"; readonly revision: number; readonly issues: readonly Issue[] }
  /** Answer to `activate`. */
  | { readonly kind: "active"; readonly revision: number }
  /** Answer to `ask`. */
  | { readonly kind: "answer"; readonly ticket: number; readonly value: WorkerAnswer }
  /** Answer to `drain`. `aborted`: requests that did not end in time. */
  | { readonly kind: "stopped"; readonly aborted: number }
  /** A client has asked for a name that a certificate could be ordered for. */
  | { readonly kind: "wanted"; readonly name: string }
  /** Credentials were used since the last time. */
  | { readonly kind: "used"; readonly credentialIds: readonly string[] }
  | {
      readonly kind: "log";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
    };
