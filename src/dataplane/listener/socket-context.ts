// What a listener on sockets of ours needs of its worker; knows no connection.
import type { ProxyLists } from "../../net/known-proxies.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import type { OpenChallenges } from "../challenges.ts";
import type { ListenerContext } from "../server/bun-server.ts";
import type { Http2End } from "../server/served-connection.ts";
import type { CertificateIndex } from "./certificate-index.ts";
import type { SocketOwner } from "./client-socket.ts";
import type { ConnectionSlot, Preread } from "./pending-connection.ts";

export interface SocketContext extends ListenerContext {
  /** The live version's: a new limit applies to the next connection. */
  livePlan(): ListenerPlan;
  /** The live plan of the listener at the port that serves the name; null: the client has named none. */
  planFor(serverName: string | null): ListenerPlan;
  /** The live plans of all listeners at the port. */
  livePlans(): readonly ListenerPlan[];
  liveCertificates(): CertificateIndex;
  /** Counts a connection; the reason when there are too many. */
  admit(): ConnectionSlot | string;
  /** The networks that stand for names of proxies. */
  proxyLists(): ProxyLists;
  /** Milliseconds in which a client must send its PROXY header and ClientHello. */
  prereadTimeout(): number;
  /** Hands the socket to the stream route at the port that matches the name; null when none does. */
  adopt(preread: Preread): SocketOwner | null;
  refused(reason: string, address: string): void;
  /** The gateway has ended a connection of HTTP/2 for what its client sent. */
  onHttp2End(reason: Http2End): void;
  /** Milliseconds for the head of a request; 0: that of idle connections. */
  headTimeoutMs(): number;
  /** Milliseconds in which a client must read some of a response; 0: no limit. */
  responseWriteTimeout(): number;
  readonly challenges: OpenChallenges;
  /** A TLS handshake succeeded or failed. */
  onHandshake(isDone: boolean): void;
}
