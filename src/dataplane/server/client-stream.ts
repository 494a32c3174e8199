// The contract between a server engine and the request path: one client request and its response; knows no engine and no route.
import type { FieldPairs } from "../../http/fields.ts";
import type { HeaderBlock } from "../../http/header-block.ts";
import type { BodySource } from "../client-body.ts";
import type { ProxyError } from "../error.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { BoundConnections } from "../upstream/bound-connections.ts";
import type { PeerSocket, SocketUser } from "./peer-socket.ts";

/** What an engine can do. The request path asks this, never which engine it is. */
export interface EngineFeatures {
  /** Trailers reach the client, so that it can speak gRPC. */
  readonly hasTrailers: boolean;
  /** `BodySource.trailers` has those of the request. */
  readonly readsTrailers: boolean;
  /** Streamed bodies keep their Content-Length. */
  readonly keepsLength: boolean;
  /** Interim responses reach the client. */
  readonly hasInterim: boolean;
}

/** The head of a response as an engine sends it. */
export interface OutgoingHead {
  readonly status: number;
  /** The end-to-end header fields as lines, each with CRLF and with names as their author has written them. */
  readonly lines: string;
  /** The same for Bun's responses, made once asked for. The engine copies them before the call returns, so that responses can share one object. */
  readonly headers: Headers;
  /** That of a target; absent: the usual one. */
  readonly reason?: string;
  readonly hasDate: boolean;
  /** Whether it has a Content-Type that is not empty. */
  readonly hasContentType: boolean;
  /** Whether there is a Content-Length. */
  readonly hasLength: boolean;
  /** Its value; -1: there is none. */
  readonly length: number;
  /** The value of Trailer, for engines that send trailers after this body. */
  readonly trailer?: string | null;
  /** Whether the connection ends with this response. */
  readonly closes: boolean;
  /** Whether the target asks for authentication that holds for a connection (see `http/bound-challenges.ts`). */
  readonly needsHttp1?: boolean;
}

/** The client's side of a streamed body. */
export interface BodyReader {
  /** The client is ready for more bytes. */
  wanted(): void;
  /** The client reads more slowly than bytes are written, although they can still be written. */
  behind?(): void;
  /** The client went away. Called at most once; nothing follows. */
  cancelled(): void;
}

/** A response body that is sent as it arrives. */
export interface BodyWriter {
  /** True before the first write. */
  readonly isEmpty: boolean;
  /** Sends bytes; false when the source should pause until `wanted`. */
  write(chunk: Uint8Array): boolean;
  /** The body is complete; `done` runs when everything was sent. */
  end(done: () => void): void;
  /** Aborts the response, visibly: resets the HTTP/1.1 connection, or RST_STREAM on HTTP/2. */
  fail(error: Error): void;
}

/** The client's side of a tunnel: its socket, or a stream of HTTP/2. */
export type SwitchedSocket = Pick<
  PeerSocket,
  | "heldBytes"
  | "isBehind"
  | "isClosed"
  | "isFinished"
  | "hasEnded"
  | "boundReads"
  | "write"
  | "pause"
  | "resume"
  | "endWriting"
  | "finish"
  | "destroy"
>;

/** What a client's connection belongs to after 101. */
export interface SwitchedClient extends SocketUser {
  /** The 101 was written. `early`: what the client has sent behind its request. */
  switched(socket: SwitchedSocket, early: Buffer): void;
}

/**
 * One request of a server engine, and everything that the request path knows of its client. Exactly one of
 * `respond`, `start`, `upgrade`, `switchProtocols` and `abort` ends it.
 */
export interface ClientStream {
  readonly method: string;
  /** Absolute form: scheme, authority and target as parsed by the engine; or the origin form alone, or `*`. */
  readonly url: string;
  /** The target before the engine resolved or escaped anything, in origin form; absent: the engine does not know it. */
  readonly rawTarget?: string;
  /** What is wrong with the request, where the engine leaves the response to the request path; else null. */
  readonly problem: ProxyError | null;
  /** The header fields, for whose syntax the engine vouches. */
  readonly fields: HeaderBlock;
  /** What the socket tells of TLS and the PROXY header; null: Bun.serve has the socket. */
  readonly connection: ConnectionInfo | null;
  readonly features: EngineFeatures;
  /** `1.0`, `1.1` or `2`; null when the engine does not know. */
  readonly httpVersion: string | null;
  /** Connections to targets on which this client has authenticated; only of engines that own its connection, and HTTP/1.1. */
  readonly boundConnections?: BoundConnections;
  /** False when there is no body, or the engine hides it. */
  readonly hasBody: boolean;
  /**
   * Whether the client waits for 100 before it sends the body, and `openBody` would send it: a target may decide first (RFC 9110
   * section 10.1.1).
   */
  readonly awaitsContinue: boolean;
  /** The body; call it once, and only with `hasBody`. */
  openBody(): BodySource;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Engines may know it only while the client is connected. */
  peerAddress(): string;
  /** Known after a call of `peerAddress`. */
  readonly peerPort: number;
  /** From here on the gateway's own timeouts apply, not the engine's idle timeout. */
  suspendIdleTimeout(): void;
  /** Undoes `suspendIdleTimeout`. */
  restoreIdleTimeout(seconds: number): void;
  /** Closes the connection after this response (RFC 9112 section 9.6). */
  closeAfterResponse(): void;
  /** Trailers, sent after the body; call it before the response ends. Engines without `hasTrailers` drop them. */
  setTrailers(trailers: FieldPairs): void;
  /** Sends an interim response (RFC 9110 section 15.2). Engines without `hasInterim` drop it. */
  sendInterim(status: number, fields: FieldPairs): void;
  /** Sends a complete response. The engine releases the pieces unless `isShared`. */
  respond(head: OutgoingHead, body: readonly Uint8Array[], isShared: boolean): void;
  /** Sends the head; the body follows. `isShared`: other code still holds the written pieces. */
  start(head: OutgoingHead, reader: BodyReader, isShared: boolean): BodyWriter;
  /** Upgrades the connection to a WebSocket whose events go to `session`; false when the engine cannot. */
  upgrade(fields: FieldPairs, session: object): boolean;
  /**
   * Sends 101 with these fields and hands the connection over to `client`; false when the client has not asked for an upgrade or has
   * gone. Throws TypeError when a field is not valid. Engines that do not own their sockets have `upgrade` only.
   */
  switchProtocols?(protocol: string, fields: FieldPairs, client: SwitchedClient): boolean;
  /** Closes the connection, or the HTTP/2 stream, without a response. */
  abort(): void;
}
