// One request and its response on a stream of an HTTP/2 session; knows no client and no route.
import type { ClientHttp2Stream } from "node:http2";
import type { FieldPairs } from "../../http/fields.ts";
import { failures, type ProxyError } from "../error.ts";
import {
  InterimResponses,
  RequestSyntaxError,
  requestFields,
  responseFields,
  responseHead,
  sentTrailers,
  trailerFields,
} from "./http2-head.ts";
import type { SessionPool } from "./http2-pool.ts";
import type { SessionUser, UpstreamSession } from "./http2-session.ts";
import type { BodySink, RequestBody } from "./request-body.ts";
import type { ResponseHead } from "./response-head.ts";
import type { HeadCache } from "./response-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";
import type { ExchangeOwner, UpstreamExchange, UpstreamTransport } from "./transport.ts";

type Phase = "connecting" | "sending" | "awaiting" | "reading" | "done";

/** RFC 9113 section 7. */
const NO_ERROR = 0;
const REFUSED_STREAM = 7;
const CANCEL = 8;
const HTTP_1_1_REQUIRED = 13;
const END_STREAM = 1;

/**
 * How often a request is sent again, to the same target, because it was refused. Targets that end sessions by age do so one by
 * one; a target that refuses single streams is overloaded.
 */
const MAX_GOAWAYS = 3;
const MAX_REFUSALS = 1;

export interface Http2ExchangeOptions {
  readonly pool: SessionPool;
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
  #stream: ClientHttp2Stream | null = null;
  #phase: Phase = "connecting";
  #deadline = 0;
  #head: ResponseHead | null = null;
  /** Bytes that Content-Length announces and that have not arrived; -1: unknown. */
  #remaining = -1;
  #bodyIsSent: boolean;
  #refusals = 0;
  readonly #interims = new InterimResponses();
  /** The session was idle when this request joined: the target may have been about to close it. */
  #wasIdle = false;
  #isPaused = false;
  #now = 0;
  #sentAt = 0;

  constructor(options: Http2ExchangeOptions) {
    this.#options = options;
    this.#owner = options.owner;
    this.#body = options.owner.body;
    this.#bodyIsSent = this.#body === null;
  }

  start(now: number): void {
    this.#now = now;
    this.#join(this.#options.isFresh);
  }

  #join(isFresh: boolean): void {
    this.#phase = "connecting";
    this.#deadline = after(this.#now, this.#owner.timeouts.connect);
    const session = this.#options.pool.acquire(this, isFresh);
    this.#session = session;
    this.#wasIdle = session.isReady && session.streams === 1;
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
    this.#phase = "sending";
    let stream: ClientHttp2Stream;
    try {
      const fields = requestFields(this.#owner.requestHead(), session.scheme);
      const body = this.#body;
      const waitForTrailers = body?.mayHaveTrailers === true;
      stream = session.request(fields, { endStream: body === null, waitForTrailers });
      if (waitForTrailers)
        stream.on("wantTrailers", () => this.#sendTrailers(stream, body.trailers));
    } catch (error) {
      this.#fail(
        error instanceof RequestSyntaxError
          ? failures.badRequest(error.message)
          : { ...failures.internal(error) },
      );
      return;
    }
    this.isSent = true;
    this.#sentAt = this.#now;
    this.#stream = stream;
    this.#listen(stream);
    if (this.#body === null) this.#awaitResponse();
    else {
      this.#deadline = after(this.#now, this.#owner.timeouts.write);
      this.#body.sendTo(null, this, (error) => this.#bodyEnded(stream, error));
    }
  }

  #listen(stream: ClientHttp2Stream): void {
    // The last argument holds names and values in turn, with every repeated field.
    const on = (event: string, run: (fields: string[], flags: number) => void) =>
      stream.on(event as "headers", (_fields, flags: number, raw?: string[]) =>
        this.#receive(stream, () => run(raw ?? [], flags)),
      );
    on("headers", (fields) => this.#interim(fields));
    on("response", (fields, flags) => this.#finalHead(stream, fields, flags));
    on("trailers", (fields, flags) => this.#trailers(fields, flags));
    stream.on("data", (chunk: Buffer) => this.#receive(stream, () => this.#content(stream, chunk)));
    stream.on("end", () => this.#receive(stream, () => this.#ended(stream)));
    const onBroken = () => {
      if (stream === this.#stream) this.#broken(stream);
    };
    stream.on("error", onBroken);
    stream.on("close", onBroken);
  }

  /** Runs the handler of an event of the current stream. */
  #receive(stream: ClientHttp2Stream, run: () => void): void {
    if (stream !== this.#stream || this.#phase === "done") return;
    this.#owner.request.receivedAt = performance.now();
    try {
      run();
    } catch (error) {
      this.refuse(error);
    }
  }

  // The request body.

  write(bytes: Uint8Array, isLast: boolean): boolean {
    const stream = this.#stream;
    const done = () => {
      if (stream === this.#stream) this.#body?.drained();
    };
    // The client's bytes are valid until `drained` only.
    if (isLast) stream?.end(bytes, done);
    else stream?.write(bytes, done);
    return false;
  }

  #bodyEnded(stream: ClientHttp2Stream, error: ProxyError | null): void {
    if (this.#phase === "done" || stream !== this.#stream) return;
    if (error !== null) {
      this.#fail(error);
      return;
    }
    this.#bodyIsSent = true;
    if (!stream.writableEnded) stream.end();
    if (this.#phase === "sending") this.#awaitResponse();
  }

  /** Once the body has gone out, of which they are the end. */
  #sendTrailers(stream: ClientHttp2Stream, trailers: FieldPairs): void {
    try {
      stream.sendTrailers(sentTrailers(trailers));
    } catch {
      if (stream === this.#stream) this.#fail(failures.badRequest("a trailer is not valid"));
    }
  }

  #awaitResponse(): void {
    this.#phase = "awaiting";
    this.#deadline = after(this.#now, this.#owner.timeouts.response);
  }

  // The response.

  #interim(raw: readonly string[]): void {
    const { status, pairs } = this.#interims.read(raw);
    if (status !== 100) this.#owner.onInterim?.(status, pairs);
  }

  #finalHead(stream: ClientHttp2Stream, raw: readonly string[], flags: number): void {
    const { upstreamMethod, generation } = this.#owner.request;
    const fields = responseFields(raw);
    if (fields.bytes > generation.maxResponseHeadBytes) {
      this.#fail(failures.headTooLong);
      return;
    }
    const isHead = upstreamMethod === "HEAD";
    const head = responseHead(fields, isHead, this.#options.heads);
    if (head.framing === "length") this.#remaining = head.length;
    if ((flags & END_STREAM) !== 0 && this.#remaining > 0)
      throw new ResponseSyntaxError("the target sent less than its Content-Length");
    this.#head = head;
    this.#phase = "reading";
    this.#deadline = after(this.#now, this.#owner.timeouts.read);
    this.#owner.onHead(head);
    if (stream === this.#stream && !this.#isComplete(stream)) this.#owner.onWaiting();
  }

  #content(stream: ClientHttp2Stream, chunk: Buffer): void {
    if (this.#phase !== "reading") return;
    this.#deadline = after(this.#now, this.#owner.timeouts.read);
    if (this.#head?.framing === "none")
      throw new ResponseSyntaxError("the target sent content where there is none");
    if (this.#remaining >= 0) {
      if (chunk.length > this.#remaining)
        throw new ResponseSyntaxError("the target sent more than its Content-Length");
      this.#remaining -= chunk.length;
    }
    this.#owner.onContent(chunk);
    if (stream === this.#stream && !this.#isComplete(stream)) this.#owner.onWaiting();
  }

  #trailers(raw: readonly string[], flags: number): void {
    if ((flags & END_STREAM) === 0)
      throw new ResponseSyntaxError("the target sent trailers that do not end the response");
    const trailers = trailerFields(raw);
    if (trailers.length > 0) this.#owner.onTrailers?.(trailers);
  }

  /** Whether the target has sent the whole response; some of it may not be read yet. */
  #isComplete(stream: ClientHttp2Stream): boolean {
    return this.#session?.isEnded(stream) === true;
  }

  /** Node:http2 ends streams also when they are reset: `close` follows then. */
  #ended(stream: ClientHttp2Stream): void {
    if (this.#phase !== "reading" || !this.#isComplete(stream)) return;
    if (this.#remaining > 0)
      throw new ResponseSyntaxError("the target sent less than its Content-Length");
    this.#owner.onFinished();
    if (!this.#bodyIsSent) this.#body?.cancel();
    this.#release(this.#bodyIsSent);
  }

  // Failures.

  /** The stream was reset, or refused by GOAWAY. */
  #broken(stream: ClientHttp2Stream): void {
    if (this.#phase === "done") return;
    const code = stream.rstCode ?? NO_ERROR;
    if (this.#isRefused()) this.#refused(MAX_GOAWAYS);
    else if (this.#phase === "reading") this.#fail(failures.incomplete);
    else if (code === REFUSED_STREAM) this.#refused(MAX_REFUSALS);
    else if (code === HTTP_1_1_REQUIRED) this.#fail(failures.noHttp2);
    else this.#fail(failures.streamReset);
  }

  /** The target has not processed the request and never will (RFC 9113 section 8.7): another session may. */
  #refused(most: number): void {
    const isRepeatable = this.#body === null || this.#body.isRepeatable;
    if (this.#phase === "reading" || !isRepeatable || ++this.#refusals > most) {
      this.#fail(failures.streamRefused);
      return;
    }
    if (!this.#bodyIsSent) this.#body?.cancel();
    this.#leave();
    this.#bodyIsSent = this.#body === null;
    this.#join(true);
  }

  onSessionEnded(error: ProxyError | null, isFirst: boolean): void {
    if (this.#phase === "done") return;
    if (this.#isRefused()) {
      this.#refused(MAX_GOAWAYS);
      return;
    }
    const failure = error ?? this.#failureOfSession();
    this.#fail(isFirst ? failure : { ...failure, isRepeated: true });
  }

  #isRefused(): boolean {
    return this.#stream !== null && this.#session?.isRefused(this.#stream) === true;
  }

  #failureOfSession(): ProxyError {
    if (this.#phase === "connecting") return failures.refused();
    if (this.#phase === "reading") return failures.incomplete;
    const isSilent = (this.#session?.receivedAt ?? 0) <= this.#sentAt;
    return this.#wasIdle && isSilent ? failures.closedKept : failures.closedEarly;
  }

  refuse(error: unknown): void {
    if (error instanceof ResponseSyntaxError) this.#fail(failures.protocol(error.message));
    else this.#fail(failures.internal(error));
  }

  #fail(error: ProxyError): void {
    if (this.#phase === "done") return;
    this.abort();
    this.#owner.onFailed(error);
  }

  abort(): void {
    if (this.#phase === "done") return;
    // An unread body goes with the next attempt.
    if (this.isSent) this.#body?.cancel();
    this.#release(false);
  }

  #release(isWhole: boolean): void {
    this.#phase = "done";
    const stream = this.#stream;
    if (!isWhole && stream !== null && !stream.destroyed) {
      this.#session?.countReset();
      // The code must be there before, because Bun resets with NO_ERROR otherwise.
      (stream as { rstCode: number }).rstCode = CANCEL;
      // Without an error Bun ends the body first: the target would take a broken request as complete.
      stream.destroy(new Error("the exchange was aborted"));
    }
    this.#leave();
  }

  #leave(): void {
    this.#session?.leave(this, this.#stream);
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
    if (session !== null && session.receivedAt <= this.#sentAt) session.retire();
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

const after = (now: number, ms: number) => (ms === 0 ? Number.POSITIVE_INFINITY : now + ms);
