// The contract between a session to a target and one request on it; knows neither.
import type { FieldPairs } from "../../http/fields.ts";
import type { ProxyError } from "../error.ts";
import type { ResponseList } from "./http2-head.ts";

/** What gets the response of a stream. */
export interface StreamUser {
  /** The head, or an interim one. What is in `list` is valid until the call returns. Throws ResponseSyntaxError. */
  onFields(list: ResponseList, isLast: boolean): void;
  onContent(piece: Buffer): void;
  /** The response is complete. */
  onEnd(trailers: FieldPairs): void;
  /** Everything that was received was reported, and the response is not complete. */
  onWaiting(): void;
  /** All that was written of the request is sent. */
  onDrained(): void;
  /** The target has reset the stream. */
  onReset(code: number): void;
  /** GOAWAY says that the target never processes the stream (RFC 9113 section 6.8). */
  onRefused(): void;
  /** The response is malformed. `code`: why the stream must be reset. */
  onBroken(error: unknown, code: number): void;
}

/** A session has ended, or failed to connect. */
export interface SessionEnd {
  /** Null: the connection was lost. */
  readonly error: ProxyError | null;
  /** Why, for the log. */
  readonly cause: unknown;
  /** The failure was reported to no other user. */
  readonly isFirst: boolean;
}

/** What uses a stream of a session. */
export interface SessionUser extends StreamUser {
  /** The session accepts a stream, now or again. */
  onSessionReady(): void;
  /** The session is open, but the target accepts fewer streams than have joined it. */
  onSessionFull(): void;
  onSessionEnded(end: SessionEnd): void;
}
