// The contract between the request path and an upstream transport: one request to a target and its response; knows no protocol.
import type { ProxyError } from "../error.ts";
import type { FieldPairs } from "../../http/fields.ts";
import type { BoundConnections } from "./bound-connections.ts";
import type { UpstreamConnection } from "./connection.ts";
import type { RequestBody } from "./request-body.ts";
import type { ResponseHead } from "./response-head.ts";

/** Milliseconds for each phase, 0 for no limit. */
export interface ExchangeTimeouts {
  readonly connect: number;
  readonly response: number;
  readonly read: number;
  readonly write: number;
}

/**
 * The owner of the request. `onHead` runs once, then `onContent` and one `onFinished`, or `onFailed` at any time; nothing after
 * those two.
 */
export interface ExchangeOwner {
  /** Request line and header fields with the empty line, latin1; called once. */
  requestHead(): string;
  readonly body: RequestBody | null;
  readonly timeouts: ExchangeTimeouts;
  /** `connectedAt` and `receivedAt` are written to, in `performance.now()`. */
  readonly request: ExchangeSubject;
  /** The head has arrived. Throws when the fields are not valid. */
  onHead(head: ResponseHead): void;
  onContent(chunk: Buffer): void;
  /** Everything received was reported, and the response is not complete. */
  onWaiting(): void;
  /** The trailers of the response have arrived; `onFinished` follows. */
  onTrailers?(trailers: FieldPairs): void;
  /** An interim response other than 100 has arrived. */
  onInterim?(status: number, fields: FieldPairs): void;
  onFinished(): void;
  onFailed(error: ProxyError): void;
  /**
   * The target sent 101: the exchange ends, and the connection with the bytes behind the head belongs to the owner.
   * Only for owners that request an upgrade.
   */
  onUpgraded?(head: ResponseHead, connection: UpstreamConnection, rest: Buffer): void;
}

export interface ExchangeSubject {
  /** The method sent upstream. */
  readonly upstreamMethod: string;
  readonly generation: { readonly maxResponseHeadBytes: number };
  readonly stream?: { readonly boundConnections?: BoundConnections };
  /** Its client aborts often: it shares no HTTP/2 session with others. */
  readonly isApart?: boolean;
  connectedAt: number;
  receivedAt: number;
}

/** One attempt. The owner calls `tick`; timeouts need no timer of their own. */
export interface UpstreamExchange {
  /** True once a byte of the request may have reached the target. */
  readonly isSent: boolean;
  /** Sends the request, as soon as the connection is open. `now` in the owner's milliseconds. */
  start(now: number): void;
  /** Called about ten times a second with the owner's time. */
  tick(now: number): void;
  /** Stops reading while the client does not read; suspends the read timeout. */
  /** What is read has to wait for the client: bounds what one read brings, where a transport has a socket of its own. */
  boundReads?(): void;
  pause(): void;
  resume(now: number): void;
  /** Aborts the exchange: the client went away, or a timeout of the request has passed. */
  abort(): void;
  /** The owner found the response malformed: ends the exchange with `onFailed`. */
  refuse(error: unknown): void;
}

/** How requests reach a target: over HTTP/1.1 or HTTP/2. */
export interface UpstreamTransport {
  /** An exchange that has not begun. `isFresh`: on a new connection. */
  open(owner: ExchangeOwner, isFresh: boolean): UpstreamExchange;
}
