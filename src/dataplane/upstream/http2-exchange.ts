// One request and its response on a stream of an HTTP/2 session; knows no client and no route.
import type { FieldPairs } from "../../http/fields.ts";
import { failures, type ProxyError } from "../error.ts";
import { CODE } from "../http2/frames.ts";
import { InterimResponses, RequestSyntaxError, type ResponseList } from "./http2-head.ts";
import type { SessionPool } from "./http2-pool.ts";
import type { UpstreamSession } from "./http2-session.ts";
import type { UpstreamStream } from "./http2-stream.ts";
import type { SessionEnd, SessionUser } from "./http2-user.ts";
import type { BodySink, RequestBody } from "./request-body.ts";
import type { HeadCache } from "./response-head.ts";
import type { ResponseHead } from "./response-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";
import type { ExchangeOwner, UpstreamExchange, UpstreamTransport } from "./transport.ts";

type Phase = "connecting" | "sending" | "awaiting" | "reading" | "done";

/**
 * How often a request is sent again, to the same target, because it was refused. Targets that end sessions by age do so one by
 * one; a target that refuses single streams is overloaded.
 */
const MAX_GOAWAYS = 3;
const MAX_REFUSALS = 1;

export interface Http2ExchangeOptions {
  readonly pool: Pick<SessionPool, "acquire">;
  readonly owner: ExchangeOwner;
  /** The target's cache. */
  readonly heads: HeadCache;
  readonly isFresh: boolean;
}

/** Drives one attempt. The owner calls `tick`; timeouts need no timer of their own. */
export class Http2Exchange implements UpstreamExchange, SessionUser, BodySink {
  isSent = false;
  readonly #options: Http2ExchangeOptions;
  readonly #owner: ExchangeOwner;
  readonly #body: RequestBody | null;
  #session: UpstreamSession | null = null;
  #stream: UpstreamStream | null = null;
  #phase: Phase = "connecting";
  #deadline = 0;
  #head: ResponseHead | null = null;
  /** Bytes that Content-Length announces and that have not arrived; -1: unknown. */
  #remaining = -1;
  #refusals = 0;
  /** Null: none has arrived. */
  #interims: InterimResponses | null = null;
  /** The session was idle when this request joined: the target may have been about to close it. */
  #wasIdle = false;
  #isPaused = false;
  #now = 0;
  #sentAt = 0;

  constructor(options: Http2ExchangeOptions) {
    this.#options = options;
    this.#owner = options.owner;
    this.#body = options.owner.body;
  }

  start(now: number): void {
    this.#now = now;
    this.#join(this.#options.isFresh);
  }

  #join(isFresh: boolean): void {
    this.#phase = "connecting";
    this.#deadline = after(this.#now, this.#owner.timeouts.connect);
    const isApart = this.#owner.request.isApart === true;
    const session = this.#options.pool.acquire(this, { isFresh, isApart });
    this.#session = session;
    this.#wasIdle = session.isReady && session.load === 1;
    if (session.isReady) this.#send(session);
  }

  onSessionReady(): void {
    if (this.#phase !== "connecting" || this.#session === null) return;
    this.#owner.request.connectedAt = performance.now();
    this.#send(this.#session);
  }

  onSessionFull(): void {
    if (this.#phase !== "connecting") return;
    this.#leave();
    this.#join(false);
  }

  #send(session: UpstreamSession): void {
    if (!session.hasRoom) return session.awaitRoom(this);
    this.#phase = "sending";
    const body = this.#body;
    try {
      this.#stream = session.open(this, this.#owner.requestHead(), body === null);
    } catch (error) {
      return this.#fail(
        error instanceof RequestSyntaxError
          ? failures.badRequest(error.message)
          : failures.internal(error),
      );
    }
    this.isSent = true;
    this.#sentAt = this.#now;
    if (body === null) return this.#awaitResponse();
    this.#deadline = after(this.#now, this.#owner.timeouts.write);
    this.#sendBody(body, this.#stream);
  }

  /** A method of its own: inlined, its closure would be allocated for each request. */
  #sendBody(body: RequestBody, stream: UpstreamStream): void {
    body.sendTo(null, this, (error) => this.#bodyEnded(stream, error));
  }

  // The request body.

  write(bytes: Uint8Array): boolean {
    const stream = this.#stream;
    return stream === null || stream.write(bytes);
  }

  onDrained(): void {
    this.#body?.drained();
  }

  #bodyEnded(stream: UpstreamStream, error: ProxyError | null): void {
    if (this.#phase === "done" || stream !== this.#stream) return;
    if (error !== null) return this.#fail(error);
    stream.end(this.#body?.trailers ?? NO_TRAILERS);
    if (this.#phase === "sending") this.#awaitResponse();
  }

  #awaitResponse(): void {
    this.#phase = "awaiting";
    this.#deadline = after(this.#now, this.#owner.timeouts.response);
  }

  // The response.

  onFields(list: ResponseList, isLast: boolean): void {
    const stream = this.#stream;
    if (stream === null || this.#phase === "done") return;
    this.#received();
    if (this.#phase === "reading") return this.#lastFields(stream, list, isLast);
    list.checkHead();
    if (list.status < 200) return this.#interim(list, isLast);
    this.#finalHead(list);
    if (isLast) stream.ended(NO_TRAILERS);
  }

  #received(): void {
    this.#owner.request.receivedAt = this.#session?.receivedAt ?? performance.now();
  }

  #interim(list: ResponseList, isLast: boolean): void {
    this.#interims ??= new InterimResponses();
    this.#interims.check(list);
    if (isLast) throw new ResponseSyntaxError("the target sent an interim response alone");
    if (list.status !== 100) this.#owner.onInterim?.(list.status, list.pairs);
  }

  #finalHead(list: ResponseList): void {
    const { upstreamMethod, generation } = this.#owner.request;
    if (list.isTooLong || list.bytes > generation.maxResponseHeadBytes)
      return this.#fail(failures.headTooLong);
    const head = list.head(upstreamMethod === "HEAD", this.#options.heads);
    if (head.framing === "length") this.#remaining = head.length;
    this.#head = head;
    this.#phase = "reading";
    this.#deadline = after(this.#now, this.#owner.timeouts.read);
    this.#owner.onHead(head);
  }

  #lastFields(stream: UpstreamStream, list: ResponseList, isLast: boolean): void {
    const trailers = list.trailers();
    if (!isLast)
      throw new ResponseSyntaxError("the target sent trailers that do not end the response");
    stream.ended(trailers);
  }

  onContent(piece: Buffer): void {
    if (this.#phase === "done") return;
    this.#received();
    if (this.#phase !== "reading")
      throw new ResponseSyntaxError("the target sent content before its head");
    this.#deadline = after(this.#now, this.#owner.timeouts.read);
    if (this.#head?.framing === "none")
      throw new ResponseSyntaxError("the target sent content where there is none");
    if (this.#remaining >= 0) {
      if (piece.length > this.#remaining)
        throw new ResponseSyntaxError("the target sent more than its Content-Length");
      this.#remaining -= piece.length;
    }
    this.#owner.onContent(piece);
  }

  onWaiting(): void {
    if (this.#phase === "reading") this.#owner.onWaiting();
  }

  onEnd(trailers: FieldPairs): void {
    if (this.#phase === "done") return;
    // Bun's server ends a stream that it resets.
    if (this.#phase !== "reading") return this.#fail(failures.streamReset);
    if (this.#remaining > 0)
      throw new ResponseSyntaxError("the target sent less than its Content-Length");
    if (trailers.length > 0) this.#owner.onTrailers?.(trailers);
    this.#owner.onFinished();
    if (this.#stream?.isLocalEnded !== true) this.#body?.cancel();
    this.#release(CODE.cancel);
  }

  // Failures.

  onReset(code: number): void {
    if (this.#phase === "done") return;
    // The target needs no more of the request, and its response waits for the client.
    if (this.#phase === "reading" && this.#stream?.isRemoteEnded === true) this.#body?.cancel();
    else if (this.#phase === "reading") this.#fail(failures.incomplete);
    else if (code === CODE.refusedStream) this.#refused(MAX_REFUSALS);
    else if (code === CODE.http11Required) this.#fail(failures.noHttp2);
    else this.#fail(failures.streamReset);
  }

  onRefused(): void {
    this.#refused(MAX_GOAWAYS);
  }

  /** The target has not processed the request and never will (RFC 9113 section 8.7): another session may. */
  #refused(most: number): void {
    const isRepeatable = this.#body === null || this.#body.isRepeatable;
    if (this.#phase === "reading" || !isRepeatable || ++this.#refusals > most)
      return this.#fail(failures.streamRefused);
    if (this.#body !== null && this.#stream?.isLocalEnded !== true) this.#body.cancel();
    this.#leave();
    this.#join(true);
  }

  onSessionEnded({ error, cause, isFirst }: SessionEnd): void {
    // A complete response that the client has not read yet.
    if (this.#phase === "done" || this.#stream?.isRemoteEnded === true) return;
    const failure = error ?? { ...this.#failureOfSession(), cause };
    this.#fail(isFirst ? failure : { ...failure, isRepeated: true });
  }

  #failureOfSession(): ProxyError {
    if (this.#phase === "connecting") return failures.refused();
    if (this.#phase === "reading") return failures.incomplete;
    const isSilent = (this.#session?.heardAt ?? 0) <= this.#sentAt;
    return this.#wasIdle && isSilent ? failures.closedKept : failures.closedEarly;
  }

  refuse(error: unknown): void {
    this.onBroken(error, CODE.cancel);
  }

  onBroken(error: unknown, code: number): void {
    if (this.#phase === "done") return;
    const failure =
      error instanceof ResponseSyntaxError
        ? failures.protocol(error.message)
        : failures.internal(error);
    this.#end(code);
    this.#owner.onFailed(failure);
  }

  #fail(error: ProxyError): void {
    if (this.#phase === "done") return;
    this.abort();
    this.#owner.onFailed(error);
  }

  abort(): void {
    this.#end(CODE.cancel);
  }

  #end(code: number): void {
    if (this.#phase === "done") return;
    // An unread body goes with the next attempt.
    if (this.isSent) this.#body?.cancel();
    this.#release(code);
  }

  /** `code`: of a stream that is not complete. */
  #release(code: number): void {
    this.#phase = "done";
    if (this.#stream !== null) this.#session?.close(this.#stream, code);
    this.#leave();
  }

  #leave(): void {
    this.#stream?.detach();
    if (this.#stream !== null) this.#session?.forget(this.#stream);
    this.#session?.leave(this);
    this.#session = null;
    this.#stream = null;
  }

  // Time and back-pressure.

  tick(now: number): void {
    this.#now = now;
    if (this.#phase === "sending" && this.#body !== null) {
      const overdue = this.#body.overdue(now, this.#owner.timeouts.write);
      if (overdue !== null) this.#fail(overdue);
      return;
    }
    if (now < this.#deadline || this.#isPaused) return;
    switch (this.#phase) {
      case "connecting":
        return this.#fail(failures.connectTimeout);
      case "awaiting":
        return this.#timedOut(failures.responseTimeout);
      case "reading":
        return this.#timedOut(failures.readTimeout);
    }
  }

  /** A session on which nothing arrived since may be dead: later requests use another one. */
  #timedOut(error: ProxyError): void {
    const session = this.#session;
    if (session !== null && session.heardAt <= this.#sentAt) session.retire();
    this.#fail(error);
  }

  pause(): void {
    if (this.#isPaused || this.#phase === "done") return;
    this.#isPaused = true;
    this.#stream?.pause();
  }

  resume(now: number): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#phase === "done") return;
    this.#deadline = after(now, this.#owner.timeouts.read);
    this.#stream?.resume();
  }
}

/** HTTP/2 on the sessions of a target. */
export class Http2Transport implements UpstreamTransport {
  readonly #pool: SessionPool;
  readonly #heads: HeadCache;

  constructor(pool: SessionPool, heads: HeadCache) {
    this.#pool = pool;
    this.#heads = heads;
  }

  open(owner: ExchangeOwner, isFresh: boolean): UpstreamExchange {
    return new Http2Exchange({ pool: this.#pool, owner, heads: this.#heads, isFresh });
  }
}

const NO_TRAILERS: FieldPairs = [];

const after = (now: number, ms: number) => (ms === 0 ? Number.POSITIVE_INFINITY : now + ms);
