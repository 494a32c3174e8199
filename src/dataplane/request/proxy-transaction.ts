// Proxies one client request: upstream attempts, buffering or streaming the response, the end; knows no routing.
import type { BufferedBody } from "../buffer-budget.ts";
import { failures, type ProxyError } from "../error.ts";
import { openingComment, allowsOpeningComment } from "../event-stream.ts";
import type { InFlightEntry } from "../in-flight.ts";
import type { ResponseDraft } from "../plugin/response-draft.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { BodyReader, BodyWriter } from "../server/client-stream.ts";
import type { ServiceRuntime } from "../service-runtime.ts";
import { Exchange, type ExchangeOwner, type ExchangeTimeouts } from "../upstream/exchange.ts";
import type { RequestBody } from "../upstream/request-body.ts";
import { requestHead } from "../upstream/request-writer.ts";
import type { ResponseHead } from "../upstream/response-parser.ts";
import type { ClientRequest } from "./client-request.ts";
import {
  finish,
  report,
  respondError,
  respondUpstream,
  showToPlugins,
  startUpstream,
  statusOf,
} from "./respond.ts";
import { UpstreamAttempts } from "./upstream-attempts.ts";
import { exchangeTimeouts, requestBodyOf, totalTimeout, upstreamHost } from "./upstream-request.ts";

/** State of the response body. */
type Mode = "waiting" | "buffering" | "streaming" | "done";

/** Lives from the first attempt to the last byte. Create it and call `begin`. */
export class ProxyTransaction
  extends UpstreamAttempts
  implements ExchangeOwner, InFlightEntry, BufferedBody, BodyReader
{
  previous: InFlightEntry | null = null;
  next: InFlightEntry | null = null;
  isListed = false;
  lastByteAt = 0;
  readonly body: RequestBody | null;
  readonly #startedAt: number;
  readonly #totalDeadline: number;
  #exchange: Exchange | null = null;
  /** `per_try_timeout` of the current attempt; infinity: none, or the head has arrived. */
  #tryDeadline = Number.POSITIVE_INFINITY;
  /** When the client must have read some of the response; infinity: nothing is buffered for it. */
  #readDeadline = Number.POSITIVE_INFINITY;
  /** The pause before the next attempt. */
  #pause: Timer | null = null;
  #mode: Mode = "waiting";
  /** The response head of the last attempt. */
  responseHead: ResponseHead | null = null;
  /** Null: no plugin has a response handler. */
  draft: ResponseDraft | null = null;
  /** Buffered pieces of the response body; usually one. */
  #pieces: Buffer[] | null = null;
  /** Bytes reserved from the buffer budget; 0: none. */
  #reserved = 0;
  #writer: BodyWriter | null = null;
  #watchesClient = false;
  #hasSuspendedIdleTimeout = false;

  /** Call `writeUpstreamFields` before. */
  constructor(request: ClientRequest, route: RouteRuntime, service: ServiceRuntime) {
    super(request, route, service);
    const { inFlight } = request.worker;
    this.#startedAt = inFlight.now();
    const total = totalTimeout(this.route, this.service);
    this.#totalDeadline = total === 0 ? Number.POSITIVE_INFINITY : this.#startedAt + total;
    this.body = request.upstreamBodyLength === null ? null : requestBodyOf(request);
  }

  begin(): void {
    this.request.worker.inFlight.add(this);
    this.#attempt();
  }

  #attempt(): void {
    const target = this.startAttempt();
    if (target === null) {
      this.#respondError(this.noTarget);
      return;
    }
    const { inFlight } = this.request.worker;
    const perTry = this.policy.per_try_timeout;
    if (perTry > 0) this.#tryDeadline = inFlight.now() + perTry;
    this.#exchange = new Exchange(target.pool.acquire(this.needsFresh), target.heads, this);
    this.#exchange.start(inFlight.now());
  }

  // Called by the exchange.

  requestHead(): string {
    const { request, target } = this;
    const isKept = this.service.service.keepalive.size !== 0;
    const host = target === null ? "" : upstreamHost(this, target);
    return requestHead(request, host, isKept ? "keep" : "close");
  }

  get timeouts(): ExchangeTimeouts {
    return exchangeTimeouts(this.route, this.service);
  }

  // Events of the exchange.

  onHead(head: ResponseHead): void {
    this.attemptResponded(head.status);
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (head.status >= 400 && this.#retriedStatus(head.status)) return;
    this.responseHead = head;
    this.draft = showToPlugins(this.request, head);
    // Without a body the exchange is about to finish and its connection can be reused.
    if (this.draft?.replacement != null && head.framing !== "none") {
      // The plugin's body replaces the target's.
      this.#exchange?.abort();
      this.attemptCompleted();
      this.#respondWhole(NO_PIECES);
      return;
    }
    // An event stream has no end that would prove that the target works.
    if (head.isEventStream) this.attemptCompleted();
    const { response_buffer_bytes: limit } = this.service.service;
    const isSlow = this.draft?.isSlow === true && head.framing !== "none";
    if (head.isEventStream || head.framing === "close" || head.length > limit || isSlow)
      this.#startStreaming(head);
    else this.#mode = "buffering";
  }

  onContent(chunk: Buffer): void {
    // PipedBody counts a body that plugins transform.
    if (this.draft?.isPiped !== true) this.request.bytesOut += chunk.length;
    if (this.#mode === "buffering") {
      if (this.#pieces === null) this.#pieces = [chunk];
      else this.#pieces.push(chunk);
    } else if (this.#writer !== null && !this.#writer.write(chunk)) {
      this.#exchange?.pause();
      const { generation, worker } = this.request;
      this.#readDeadline = worker.inFlight.now() + generation.responseWriteTimeout;
    }
  }

  onWaiting(): void {
    const head = this.responseHead;
    if (head === null) return;
    if (this.#mode === "streaming") {
      if (this.#writer?.isEmpty === true && allowsOpeningComment(head))
        this.#writer.write(openingComment);
      return;
    }
    if (this.#mode !== "buffering") return;
    // A body of unknown length may take any time.
    if (head.framing === "length" && this.#awaitEnd(head.length))
      this.lastByteAt = performance.now();
    else this.#startStreaming(head);
  }

  /** Buffers a body of `bytes`; false: the worker's budget is exhausted. */
  #awaitEnd(bytes: number): boolean {
    if (this.#reserved > 0) return true;
    const { bufferBudget } = this.request.worker;
    if (!bufferBudget.reserve(bytes)) return false;
    this.#reserved = bytes;
    bufferBudget.watch(this);
    return true;
  }

  startStreaming(): void {
    try {
      if (this.responseHead !== null && this.#mode === "buffering")
        this.#startStreaming(this.responseHead);
    } catch (error) {
      // Called by a timer: an uncaught error would end the worker.
      this.#exchange?.refuse(error);
    }
  }

  /** Responds with the head and the buffered part of the body; the rest follows as it arrives. */
  #startStreaming(head: ResponseHead): void {
    this.#stopBuffering();
    const writer = startUpstream(this, head, this);
    this.#mode = "streaming";
    this.#writer = writer;
    for (const piece of this.#pieces ?? NO_PIECES) writer.write(piece);
    this.#pieces = null;
  }

  onFinished(): void {
    this.attemptCompleted();
    const { request } = this;
    request.upstreamEndAt = request.receivedAt;
    // Plugins may still work on the response; the target is done.
    this.#exchange = null;
    this.#stopBuffering();
    if (this.#mode === "buffering") this.#respondWhole(this.#pieces ?? NO_PIECES);
    else if (this.#writer === null) this.#end(this.#status);
    else this.#endStream(this.#writer);
  }

  #endStream(writer: BodyWriter): void {
    writer.end(() => this.#end(this.#status));
  }

  get #status(): number {
    return this.responseHead === null ? 0 : statusOf(this.responseHead, this.draft);
  }

  /** Responds with a complete body, and ends when plugins have transformed it. */
  #respondWhole(pieces: readonly Buffer[]): void {
    const head = this.responseHead;
    if (head === null) return;
    try {
      const pending = respondUpstream(this, head, pieces);
      if (pending !== null) {
        this.#endLater(pending);
        return;
      }
    } catch (error) {
      this.#abortResponse(error);
    }
    this.#end(this.#status);
  }

  #endLater(pending: Promise<void>): void {
    pending
      .catch((error: unknown) => this.#abortResponse(error))
      .finally(() => this.#end(this.#status));
  }

  /** A plugin failed within the response body. */
  #abortResponse(error: unknown): void {
    report(this.request, failures.internal(error));
    this.request.stream.abort();
  }

  onFailed(error: ProxyError): void {
    this.attemptFailed(error);
    if (this.#mode === "streaming") {
      this.#breakOff(error);
      return;
    }
    this.#stopBuffering();
    this.#pieces = null;
    this.responseHead = null;
    this.draft = null;
    const pause = this.pauseAfterFailure(error, this.#bodyState);
    if (pause === null) {
      this.#respondError(this.#withBodyNote(error));
      return;
    }
    this.#retry(pause);
  }

  /** Never ends the response as if it were complete: the client must see the failure. */
  #breakOff(error: ProxyError): void {
    // The target worked until the client left.
    if (error.source === "client") this.attemptCompleted();
    this.#writer?.fail(new Error(error.detail));
    this.request.isResponseAborted = true;
    this.request.sentStatus = this.#status;
    report(this.request, error);
    this.#end(error.status);
  }

  /** Adds to the error why the request was not retried. */
  #withBodyNote(error: ProxyError): ProxyError {
    if (!this.isBlockedByBody) return error;
    return {
      ...error,
      detail: `${error.detail}; not retried, because the request body was already sent`,
    };
  }

  get #bodyState(): "repeatable" | "gone" {
    return this.body === null || this.body.isRepeatable ? "repeatable" : "gone";
  }

  /** Retries a status of `retries.on`: drops the response and its connection. */
  #retriedStatus(status: number): boolean {
    const pause = this.pauseAfterStatus(status, this.#bodyState);
    if (pause === null) return false;
    this.#exchange?.abort();
    this.#retry(pause);
    return true;
  }

  /** `pause` in milliseconds. */
  #retry(pause: number): void {
    this.#mode = "waiting";
    this.#exchange = null;
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (pause < 1) this.#attempt();
    else this.#pause = setTimeout(() => this.#attempt(), pause);
  }

  #respondError(error: ProxyError): void {
    respondError(this.request, error, { isFinal: false });
    this.#end(error.status);
  }

  // Timer and client events.

  tick(now: number): void {
    if (!this.#watchesClient) this.#watchClient();
    if (!this.#hasSuspendedIdleTimeout && this.#needsTime(now)) {
      // Bun resets a waiting request at the idle timeout; from here on our own timeouts apply.
      this.#hasSuspendedIdleTimeout = true;
      this.request.stream.suspendIdleTimeout();
    }
    if (now >= this.#totalDeadline) this.#endAll();
    else if (now >= this.#readDeadline) this.#abortWith(failures.clientStalled);
    else if (now >= this.#tryDeadline) this.#endTry(now);
    else this.#exchange?.tick(now);
  }

  /** `request_timeout` has passed: counts against the current target, unless the client is still sending. */
  #endAll(): void {
    const isAwaiting = this.#mode === "waiting" && this.#exchange !== null;
    if (isAwaiting && this.body?.waitsForClient !== true)
      this.attemptFailed(failures.requestTimeout);
    this.#abortWith(failures.requestTimeout);
  }

  /** `per_try_timeout` has passed: another target may be faster. */
  #endTry(now: number): void {
    if (this.body?.waitsForClient === true) {
      // The target still waits for the client's body.
      this.#tryDeadline = now + this.policy.per_try_timeout;
      this.#exchange?.tick(now);
      return;
    }
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    const wasSent = this.#exchange?.isSent === true;
    this.#exchange?.abort();
    this.onFailed(wasSent ? failures.responseTimeout : failures.connectTimeout);
  }

  #needsTime(now: number): boolean {
    const { idleTimeout } = this.request.listener;
    return this.body !== null || now - this.#startedAt > idleTimeout * 250;
  }

  /** Only for requests that last a tick: most end before, and an abort listener costs as much as iterating the headers. */
  #watchClient(): void {
    this.#watchesClient = true;
    const { signal } = this.request.stream;
    if (signal.aborted) this.cancelled();
    else signal.addEventListener("abort", () => this.cancelled(), { once: true });
  }

  wanted(): void {
    this.#readDeadline = Number.POSITIVE_INFINITY;
    this.#exchange?.resume(this.request.worker.inFlight.now());
  }

  cancelled(): void {
    if (this.#mode === "done") return;
    const { request } = this;
    // After a complete response the abort has cost the target nothing extra.
    const isWorking = this.#exchange !== null || this.#pause !== null;
    if (isWorking && !request.isCopy) request.worker.aborted.note(request);
    this.#abortWith(failures.clientGone);
  }

  #abortWith(error: ProxyError): void {
    this.#exchange?.abort();
    if (this.#mode === "done") return;
    this.body?.cancel();
    if (this.#mode === "streaming") this.#breakOff(error);
    else this.#respondError(error);
  }

  #stopBuffering(): void {
    if (this.#reserved === 0) return;
    const { bufferBudget } = this.request.worker;
    bufferBudget.unwatch(this);
    bufferBudget.release(this.#reserved);
    this.#reserved = 0;
  }

  #end(status: number): void {
    if (this.leave()) finish(this.request, status);
  }

  leave(): boolean {
    if (this.#mode === "done") return false;
    this.#mode = "done";
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.endAttempts();
    this.#stopBuffering();
    this.#pieces = null;
    const { request } = this;
    request.worker.inFlight.remove(this);
    if (this.#hasSuspendedIdleTimeout)
      request.stream.restoreIdleTimeout(request.listener.idleTimeout);
    if (this.body !== null) request.bytesIn = this.body.bytes;
    return true;
  }
}

const NO_PIECES: readonly Buffer[] = [];
