// The contract between an acceptor and the servers that it routes connections to; knows no server.
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import type { OpenChallenges } from "../challenges.ts";
import type { ListenerContext } from "../server/bun-server.ts";
import type { Http2End } from "../server/served-connection.ts";
import type { CertificateIndex } from "./certificate-index.ts";
import type { SocketOwner } from "./loopback-tunnel.ts";
import type { AcceptDecision, ConnectionSlot, Preread } from "./pending-connection.ts";

export interface AcceptorContext extends ListenerContext {
  /** The live version's: a new limit applies to the next connection. */
  livePlan(): ListenerPlan;
  /** The live plan of the listener at the port that serves the name; null: the client has named none. */
  planFor(serverName: string | null): ListenerPlan;
  /** The live plans of all listeners at the port. */
  livePlans(): readonly ListenerPlan[];
  liveCertificates(): CertificateIndex;
  /** Whether the full engine serves the name, where the listener has both engines. */
  needsFullEngine(serverName: string | null): boolean;
  /** Counts a connection; the reason when there are too many. */
  admit(): ConnectionSlot | string;
  /** Milliseconds in which a client must send its PROXY header and ClientHello. */
  prereadTimeout(): number;
  /** Hands the socket to the stream route at the port that matches the name; null when none does. */
  adopt(preread: Preread): SocketOwner | null;
  refused(reason: string, address: string): void;
  /** The gateway has ended a connection of HTTP/2 for what its client sent. */
  onHttp2End(reason: Http2End): void;
  /** Milliseconds for the head of a request; 0: Bun's own timeout. */
  headTimeoutMs(): number;
  /** Milliseconds in which a client must read some of a response; 0: no limit. */
  responseWriteTimeout(): number;
  readonly challenges: OpenChallenges;
  /** A TLS handshake succeeded or failed, where the acceptor terminates TLS. */
  onHandshake(isDone: boolean): void;
}

/** Serves the connections that the acceptor routes to it. */
export interface ConnectionServer {
  /** `certificate`: the one that matches the server name; null: none. */
  serve(preread: Preread, certificate: CertificatePlan | null): AcceptDecision;
  /** Connections close after their current requests. */
  goAway(): void;
  /** Requests and WebSockets in progress. */
  readonly pending: number;
  /** After the acceptor's: resolves when the last request has ended. */
  stop(): Promise<void>;
  /** Closes everything at once. */
  close(): Promise<void>;
}
