// The contract between a server engine and the request path: one client request and the way back; knows no engine and no route.
import type { ConnectionInfo } from "../listener/connection-info.ts";

/** The head of a response as an engine sends it. */
export interface OutgoingHead {
  readonly status: number;
  /** End-to-end fields. The engine copies them before the call returns, so that one object may serve many responses. */
  readonly headers: Headers;
  readonly hasContentType: boolean;
  /** Whether `headers` holds a Content-Length. */
  readonly hasLength: boolean;
}

/** The client's side of a streamed body. */
export interface BodyReader {
  /** The client has room again. */
  wanted(): void;
  /** The client went away. Called at most once; nothing follows. */
  cancelled(): void;
}

/** A response body that is sent as it arrives. */
export interface BodyWriter {
  /** True until the first bytes were passed on. */
  readonly isEmpty: boolean;
  /** Passes bytes on; false when the source should pause until `wanted`. */
  write(chunk: Uint8Array): boolean;
  /** The body is complete; `done` runs when nothing is left to pass on. */
  end(done: () => void): void;
  /** Breaks the response off, visibly: HTTP/1.1 is reset, HTTP/2 gets RST_STREAM. */
  fail(error: Error): void;
}

/**
 * One request as a server engine hands it over, and everything that the request path knows of its client. Exactly one of
 * `respond`, `start`, `upgrade` and `abort` ends it.
 */
export interface ClientStream {
  readonly method: string;
  /** Absolute form: scheme, authority and target as the engine read them. */
  readonly url: string;
  /** Lower-case names; repeated fields joined with a comma. */
  readonly headers: Record<string, string>;
  /** What is known of the client's TLS and PROXY handshake; null when the engine's own socket is the client's and tells nothing. */
  readonly connection: ConnectionInfo | null;
  /** The request body; null when there is none, or the engine hides it. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Address of the connection's other end. Engines may know it only as long as the client is there. */
  peerAddress(): string;
  /** Its port, once `peerAddress` was asked. */
  readonly peerPort: number;
  /** From here on the gateway's own timeouts decide, not the engine's idle timeout. */
  suspendIdleTimeout(): void;
  /** Takes `suspendIdleTimeout` back. */
  restoreIdleTimeout(seconds: number): void;
  /** The connection ends with this response (RFC 9112 section 9.6): the client opens another one for its next request. */
  closeAfterResponse(): void;
  /** The response whose whole body is there, in pieces. They are used up unless `isShared`: nothing else may hold them. */
  respond(head: OutgoingHead, body: readonly Uint8Array[], isShared: boolean): void;
  /** The response whose body follows. `isShared`: something else goes on holding the pieces that are written. */
  start(head: OutgoingHead, reader: BodyReader, isShared: boolean): BodyWriter;
  /** Turns the connection into a WebSocket that `session` gets the events of; false when the engine cannot. */
  upgrade(fields: readonly (readonly [string, string])[], session: object): boolean;
  /** Ends the connection, or the stream of HTTP/2, without a response. */
  abort(): void;
}
