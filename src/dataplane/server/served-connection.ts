// The contract between a listener of our engine and what serves its connections; knows no protocol.
import type { Listener } from "../../model/listener.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { ErrorEnd } from "../http2/frames.ts";
import type { ClientSocket, SocketOwner } from "../listener/client-socket.ts";
import type { StreamHandler } from "./bun-stream.ts";

/** Limits of a connection, read when they apply. Times in milliseconds. */
export interface ConnectionBounds {
  /** For each request head; 0: that of the idle connection. */
  readonly headTimeout: number;
  readonly idleTimeout: number;
  /** In which a client must read some of a complete response; 0: no limit. */
  readonly writeTimeout: number;
}

/** Why the gateway ends a connection of HTTP/2: an error, or a client that does not read. */
export type Http2End = ErrorEnd | "unread";

/** What a connection needs of its listener. */
export interface ConnectionOwner {
  readonly info: ConnectionInfo;
  readonly serve: StreamHandler;
  /** The live version's: asked for each head. */
  listener(): Listener;
  bounds(): ConnectionBounds;
  /** Logs that the client is refused. */
  refused(reason: string): void;
  /** Counts it. */
  onHttp2End(reason: Http2End): void;
  /** Another protocol has begun on the socket: the connection is the other one from now on. */
  replaced(by: ServedConnection): void;
  /** The last call. */
  closed(): void;
}

/** A client's connection, in whatever protocol. */
export interface ServedConnection {
  /** Of the client's socket from now on. */
  readonly socket: SocketOwner;
  readonly info: ConnectionInfo;
  readonly isHttp2: boolean;
  /** Whether the connection ends with its current requests. */
  isGoingAway: boolean;
  /** Requests and upgraded connections in progress. */
  readonly pending: number;
  /** Whether the kernel has all that the client is to get. */
  readonly isServed: boolean;
  /** `buffered`: what the client has sent so far. */
  begin(buffered: Buffer): void;
  /** The connection ends with its current requests, at once without one. */
  goAway(): void;
  /** Called about once a second. */
  tick(now: number): void;
  /** Closes at once. */
  close(): void;
}

export type OpenConnection = (socket: ClientSocket, owner: ConnectionOwner) => ServedConnection;

/** The header line that announces HTTP/3 at the same port; empty without it. */
export const altSvcLine = ({ http3, port }: Listener): string =>
  http3 ? `Alt-Svc: h3=":${port}"; ma=86400\r\n` : "";
