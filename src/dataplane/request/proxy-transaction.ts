// Proxies one client request: upstream attempts, buffering or streaming the response, the end; knows no routing.
import type { BufferedBody } from "../buffer-budget.ts";
import { failures, type ProxyError } from "../error.ts";
import { openingComment, allowsOpeningComment } from "../event-stream.ts";
import type { InFlightEntry } from "../in-flight.ts";
import { passTrailers, type ResponseDraft } from "../plugin/response-draft.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { FieldPairs } from "../../http/fields.ts";
import type { BodyReader, BodyWriter } from "../server/client-stream.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import type { ExchangeOwner, UpstreamExchange } from "../upstream/transport.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import type { ClientRequest } from "./client-request.ts";
import { GrpcCall } from "./grpc-call.ts";
import {
  finish,
  report,
  respondError,
  failStream,
  respondUpstream,
  showToPlugins,
  startUpstream,
} from "./respond.ts";
import { UpstreamAttempts } from "./upstream-attempts.ts";
import { requestBodyOf } from "./upstream-request.ts";

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
  #startedAt = 0;
  #totalDeadline = Number.POSITIVE_INFINITY;
  #exchange: UpstreamExchange | null = null;
  /** `per_try_timeout` of the current attempt; infinity: none, or the head has arrived. */
  #tryDeadline = Number.POSITIVE_INFINITY;
  /** When the client must have read some of the response; infinity: nothing is buffered for it. */
  #readDeadline = Number.POSITIVE_INFINITY;
  #pause: Timer | null = null;
  #mode: Mode = "waiting";
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

  /** Call `writeUpstreamFields` before. An implied constructor would make an array of the arguments. */
  constructor(request: ClientRequest, route: RouteRuntime, service: ServiceRuntime) {
    super(request, route, service);
    if (request.upstreamBodyLength !== null) this.body = requestBodyOf(request);
  }

  begin(): void {
    const { request, route } = this;
    const now = request.worker.inFlight.add(this);
    this.#startedAt = now;
    if ((request.isGrpc || request.edits !== null) && request.callsGrpc) this.#callGrpc(now);
    else {
      const total = route.timeouts?.request_timeout ?? this.service.service.request_timeout;
      if (total > 0) this.#totalDeadline = now + total;
    }
    if (this.body === null || !this.buffersBody(this.body)) this.#attempt(now);
  }

  protected override bodyBuffered(error: ProxyError | null): void {
    return error === null ? this.#retry(0) : this.#abortWith(error);
  }

  /** A method of its own: inlined, its closure would be allocated for each request. */
  #callGrpc(now: number): void {
    const onTooLarge = (): void => this.#abortWith(failures.grpcRequestMessage);
    this.grpc = new GrpcCall(this.request, this.route, { now, onTooLarge });
    this.timeouts = this.grpc.timeouts(this.timeouts);
  }

  #attempt(now: number): void {
    const target = this.startAttempt();
    if (target === null) return this.#respondError(this.noTarget);
    const perTry = this.policy.per_try_timeout;
    if (perTry > 0 && this.grpc === null) this.#tryDeadline = now + perTry;
    this.#exchange = this.openExchange(target);
    this.#exchange.start(now);
  }

  protected openExchange(target: TargetRuntime): UpstreamExchange {
    return target.transport.open(this, this.needsFresh);
  }

  onHead(received: ResponseHead): void {
    const { grpc } = this;
    const head = received.hasLocation ? this.forClient(received) : received;
    const status = grpc === null ? head.status : grpc.responded(head);
    this.attemptResponded(status);
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (status >= 400 && this.#retriedStatus(status)) return;
    if (grpc?.isForeign(head) === true) return this.#abortWith(failures.notGrpc(head.status));
    this.responseHead = head;
    if (this.request.plugins !== null)
      this.draft = showToPlugins(this.request, this.request.plugins, head);
    // Without a body the exchange is about to finish and its connection can be reused.
    if (this.draft?.replacement != null && head.framing !== "none") {
      // The plugin's body replaces the target's.
      this.#exchange?.abort();
      this.attemptCompleted();
      return this.#respondWhole(NO_PIECES);
    }
    // An event stream has no end that would prove that the target works.
    if (head.isEventStream) this.attemptCompleted();
    const limit = grpc === null ? this.service.service.response_buffer_bytes : Infinity;
    const isSlow = this.draft?.isSlow === true && head.framing !== "none";
    if (head.isEventStream || head.framing === "close" || head.length > limit || isSlow)
      this.#startStreaming(head);
    else this.#mode = "buffering";
  }

  onContent(chunk: Buffer): void {
    if (this.grpc?.passes(chunk) === false) return this.#abortWith(failures.grpcResponseMessage);
    // PipedBody counts a body that plugins transform.
    if (this.draft?.isPiped !== true) this.request.bytesOut += chunk.length;
    if (this.#mode === "buffering") {
      if (this.#pieces === null) this.#pieces = [chunk];
      else this.#pieces.push(chunk);
    } else if (this.#writer !== null && !this.#writer.write(chunk)) {
      this.#exchange?.pause();
      const { generation, worker } = this.request;
      // A gRPC client may pause for as long as it likes.
      const patience = this.grpc === null ? generation.responseWriteTimeout : Number.MAX_VALUE;
      this.#readDeadline = worker.inFlight.now() + patience;
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
    if (head.framing === "length" && this.grpc === null && this.#awaitEnd(head.length))
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
    if (this.#reserved > 0) this.#stopBuffering();
    const writer = startUpstream(this, head, this);
    this.#mode = "streaming";
    this.#writer = writer;
    for (const piece of this.#pieces ?? NO_PIECES) writer.write(piece);
    this.#pieces = null;
  }

  onTrailers(trailers: FieldPairs): void {
    this.grpc?.trailed(trailers);
    passTrailers(trailers, this.draft, this.request.stream);
  }

  onInterim(status: number, fields: FieldPairs): void {
    if (this.#mode === "waiting") this.request.stream.sendInterim(status, fields);
  }

  onFinished(): void {
    if (this.grpc !== null) this.attemptTrailed(this.grpc.targetStatus);
    this.attemptCompleted();
    this.request.upstreamEndAt = this.request.receivedAt;
    // Plugins may still work on the response; the target is done.
    this.#exchange = null;
    if (this.#reserved > 0) this.#stopBuffering();
    if (this.#mode === "buffering") this.#respondWhole(this.#pieces ?? NO_PIECES);
    else if (this.#writer === null) this.#end(this.#status);
    else this.#endStream(this.#writer);
  }

  #endStream(writer: BodyWriter): void {
    try {
      // Transforms see the trailers at their end.
      if (this.draft?.isPiped === false) this.draft.sendTrailers(this.request.stream);
      writer.end(() => this.#end(this.#status));
    } catch (error) {
      this.#breakOff(failures.internal(error));
    }
  }

  get #status(): number {
    if (this.responseHead === null) return 0;
    if (this.grpc !== null) return this.grpc.ended();
    return this.draft === null ? this.responseHead.status : this.draft.status;
  }

  #endAfter(response: Promise<void>): void {
    response.catch((error) => this.#abortResponse(error)).finally(() => this.#end(this.#status));
  }

  /** Responds with a complete body, and ends when plugins have transformed it. */
  #respondWhole(pieces: readonly Buffer[]): void {
    const head = this.responseHead;
    if (head === null) return;
    try {
      const pending = respondUpstream(this, head, pieces);
      if (pending !== null) return this.#endAfter(pending);
    } catch (error) {
      this.#abortResponse(error);
    }
    this.#end(this.#status);
  }

  /** A plugin failed within the response body. */
  #abortResponse(error: unknown): void {
    report(this.request, failures.internal(error));
    this.request.stream.abort();
  }

  onFailed(error: ProxyError): void {
    this.attemptFailed(error);
    if (this.#mode === "streaming") return this.#breakOff(error);
    if (this.#reserved > 0) this.#stopBuffering();
    this.#pieces = null;
    this.responseHead = null;
    this.draft = null;
    const pause = this.pauseAfterFailure(error, this.bodyState);
    if (pause === null) this.#respondError(this.withBodyNote(error));
    else this.#retry(pause);
  }

  /** Whether the client has read less than was written. */
  get isStalled(): boolean {
    return this.#readDeadline !== Number.POSITIVE_INFINITY;
  }

  /** Never ends the response as if it were complete: the client must see the failure. */
  #breakOff(error: ProxyError): void {
    // The target worked until the client left.
    if (error.source === "client") this.attemptCompleted();
    // Before the connection ends, which is not the client's doing.
    this.request.isResponseAborted = true;
    failStream(this, this.#writer, error);
    this.request.sentStatus = this.#status;
    report(this.request, error);
    this.#end(error.status);
  }

  /** Retries a status of `retries.on`: drops the response and its connection. */
  #retriedStatus(status: number): boolean {
    const pause = this.pauseAfterStatus(status, this.bodyState);
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
    const attempt = () => this.#attempt(this.request.worker.inFlight.now());
    if (pause < 1) attempt();
    else this.#pause = setTimeout(attempt, pause);
  }

  #respondError(error: ProxyError): void {
    respondError(this.request, error, { isFinal: false });
    this.#end(error.status);
  }

  tick(now: number): void {
    const { listener, stream } = this.request;
    if (!this.#watchesClient) this.#watchClient();
    const isSlow = this.body !== null || now - this.#startedAt > listener.idleTimeout * 250;
    if (isSlow && !this.#hasSuspendedIdleTimeout) {
      // Bun resets a waiting request at the idle timeout; from here on our own timeouts apply.
      this.#hasSuspendedIdleTimeout = true;
      stream.suspendIdleTimeout();
    }
    const end = this.grpc?.overdue(now, this.body) ?? this.readingOverdue(now);
    if (end !== null) this.#abortWith(end);
    else if (now >= this.#totalDeadline) this.#endAll();
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
      return this.#exchange?.tick(now);
    }
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    const wasSent = this.#exchange?.isSent === true;
    this.#exchange?.abort();
    this.onFailed(wasSent ? failures.responseTimeout : failures.connectTimeout);
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

  behind(): void {
    this.#exchange?.boundReads?.();
  }

  cancelled(): void {
    if (this.#mode === "done" || this.request.isResponseAborted) return;
    // After a complete response the abort has cost the target nothing extra.
    const isWorking = this.#exchange !== null || this.#pause !== null;
    if (isWorking && !this.request.isCopy) this.request.worker.aborted.note(this.request);
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
    const { bufferBudget } = this.request.worker;
    bufferBudget.unwatch(this);
    bufferBudget.release(this.#reserved);
    this.#reserved = 0;
  }

  #end(status: number): void {
    if (this.#mode === "done") return;
    this.leave();
    finish(this.request, status);
  }

  leave(): void {
    if (this.#mode === "done") return;
    this.#mode = "done";
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.endAttempts();
    if (this.#reserved > 0) this.#stopBuffering();
    this.#pieces = null;
    const { request } = this;
    request.worker.inFlight.remove(this);
    if (this.#hasSuspendedIdleTimeout)
      request.stream.restoreIdleTimeout(request.listener.idleTimeout);
    if (this.body !== null) this.endBody(this.body);
  }
}

const NO_PIECES: readonly Buffer[] = [];
