// One client request on its way through a target and back: attempts, collecting or streaming the answer, the end; knows no routing.
import { Attempts } from "./attempts.ts";
import type { Collecting } from "./collecting.ts";
import { errorAnswer, toResponse } from "./error-page.ts";
import { failures, type ProxyError } from "./error.ts";
import { silentOpening, takesOpening } from "./event-stream.ts";
import type { Watched } from "./in-flight.ts";
import { ListNode } from "./linked-list.ts";
import { hangUp } from "./hang-up.ts";
import { seenByPlugins } from "./own-answer.ts";
import type { PipedBody } from "./plugin/piped-body.ts";
import { type Plan, requestBodyOf } from "./plan.ts";
import type { Piece, StreamedBody } from "./response-builder.ts";
import { TargetAnswer } from "./target-answer.ts";
import { exchangeTimeouts, totalTimeout, upstreamHost } from "./route-runtime.ts";
import { Exchange, type ExchangeOwner } from "./upstream/exchange.ts";
import type { RequestBody } from "./upstream/request-body.ts";
import { requestHead } from "./upstream/request-writer.ts";
import type { ResponseHead } from "./upstream/response-parser.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** What is done with the body of the answer. */
type Mode = "waiting" | "collecting" | "streaming" | "done";

/** Lives from the first attempt to the last byte; `resolve` gets the Response. Create it and call `begin`. */
export class ProxiedRequest implements ExchangeOwner, Watched, Collecting {
  lastByteAt = 0;
  readonly #place = new ListNode<Watched>(this);
  readonly #scope: WorkerScope;
  readonly #plan: Plan;
  readonly #resolve: (response: Response) => void;
  readonly #body: RequestBody | null;
  readonly #startedAt: number;
  readonly #totalDeadline: number;
  #exchange: Exchange | null = null;
  readonly #attempts: Attempts;
  /** When the present attempt must have brought its head; infinity: only the time-outs of its phases count. */
  #tryDeadline = Number.POSITIVE_INFINITY;
  /** When the client must have taken something of the answer; infinity: it is not waited for. */
  #takeDeadline = Number.POSITIVE_INFINITY;
  /** Waits for the next attempt. */
  #pause: Timer | null = null;
  #mode: Mode = "waiting";
  /** Of the target that is not asked in vain. */
  #answer: TargetAnswer | null = null;
  #parts: Piece[] = [];
  #reserved = 0;
  /** Place among the bodies that are waited for; null until this one is. */
  #waitingPlace: ListNode<Collecting> | null = null;
  #stream: StreamedBody | PipedBody | null = null;
  #watchesClient = false;
  #outlivesIdle = false;

  constructor(scope: WorkerScope, plan: Plan, resolve: (response: Response) => void) {
    this.#scope = scope;
    this.#plan = plan;
    this.#resolve = resolve;
    this.#startedAt = scope.inFlight.now();
    const total = totalTimeout(plan.route, plan.service);
    this.#totalDeadline = total === 0 ? Number.POSITIVE_INFINITY : this.#startedAt + total;
    this.#attempts = new Attempts(plan);
    this.#body = requestBodyOf(plan, scope.inFlight.now);
  }

  begin(): void {
    this.#scope.inFlight.add(this.#place);
    this.#attempt();
  }

  #attempt(): void {
    const { context, service, route, fields, maxHeadBytes } = this.#plan;
    const target = this.#attempts.begin();
    if (target === null) {
      this.#answerError(this.#attempts.noTarget);
      return;
    }
    const perTry = this.#attempts.policy.per_try_timeout;
    if (perTry > 0) this.#tryDeadline = this.#scope.inFlight.now() + perTry;
    const head = requestHead(context, fields, {
      target: this.#plan.target,
      host: upstreamHost(this.#plan, target, context),
      connection: service.service.keepalive.size === 0 ? "close" : "keep",
    });
    const request = {
      head,
      isHead: context.upstreamMethod === "HEAD",
      body: this.#body,
      timeouts: exchangeTimeouts(route, service),
      maxHeadBytes,
      heads: target.heads,
      times: context.record,
    };
    this.#exchange = new Exchange(target.pool.lease(this.#attempts.needsFresh), request, this);
    this.#exchange.start(this.#scope.inFlight.now());
  }

  // What the exchange tells.

  head(head: ResponseHead): void {
    this.#attempts.answered(head.status);
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (head.status >= 400 && this.#retryInstead(head.status)) return;
    const answer = new TargetAnswer(head, this.#plan, this.#attempts);
    this.#answer = answer;
    // Where nothing follows, the connection is good for the next request: it is only waited for the end.
    if (answer.isReplaced && head.framing !== "none") {
      this.#answerInstead(answer);
      return;
    }
    // Events go on for ever: nobody would wait for their end to say that the target works.
    if (head.isEventStream) this.#attempts.completed();
    const { collect_bytes: limit } = this.#plan.service.service;
    if (head.isEventStream || head.framing === "close" || head.length > limit || answer.isSlow)
      this.#startStreaming();
    else if (head.framing === "length" && !this.#reserve(head.length)) this.#startStreaming();
    else this.#mode = "collecting";
  }

  /** Plugins have put another body in the place of the one that is to come. */
  #answerInstead(answer: TargetAnswer): void {
    // What the target would still send is of no use to anybody.
    this.#exchange?.abort();
    this.#attempts.completed();
    this.#answerWhole(answer, []);
  }

  #reserve(bytes: number): boolean {
    if (!this.#scope.collectBudget.reserve(bytes)) return false;
    this.#reserved = bytes;
    return true;
  }

  content(chunk: Buffer): void {
    if (this.#answer?.isPiped !== true) this.#plan.context.record.bytesOut += chunk.length;
    if (this.#mode === "collecting") this.#parts.push(chunk);
    else if (this.#stream !== null && !this.#stream.push(chunk)) {
      this.#exchange?.pause();
      this.#takeDeadline = this.#scope.inFlight.now() + this.#plan.responseWriteTimeout;
    }
  }

  waiting(): void {
    if (this.#mode === "streaming") this.#openEventStream();
    if (this.#mode !== "collecting") return;
    // A body whose end is unknown and did not come with its beginning may take any time.
    if (this.#answer?.head.framing !== "length") {
      this.#startStreaming();
      return;
    }
    this.lastByteAt = performance.now();
    if (this.#waitingPlace === null) {
      this.#waitingPlace = new ListNode<Collecting>(this);
      this.#scope.collectBudget.watch(this.#waitingPlace);
    }
  }

  startStreaming(): void {
    try {
      this.#startStreaming();
    } catch (error) {
      // Called by a clock, where nobody would catch it: the worker would end.
      this.#exchange?.refuse(error);
    }
  }

  /** Answers with the head and what is there of the body; the rest follows as it comes. */
  #startStreaming(): void {
    const answer = this.#answer;
    if (answer === null || this.#mode === "streaming" || this.#mode === "done") return;
    this.#stopCollecting();
    const source = {
      wanted: () => {
        this.#takeDeadline = Number.POSITIVE_INFINITY;
        this.#exchange?.resume(this.#scope.inFlight.now());
      },
      cancelled: () => this.#clientGone(),
    };
    const { response, body } = answer.streamed(source);
    this.#mode = "streaming";
    this.#stream = body;
    for (const part of this.#parts) body.push(part);
    this.#parts = [];
    this.#resolve(response);
  }

  #openEventStream(): void {
    const stream = this.#stream;
    if (stream?.isEmpty === true && this.#answer !== null && takesOpening(this.#answer.head))
      stream.push(silentOpening);
  }

  finished(): void {
    this.#attempts.completed();
    const { record } = this.#plan.context;
    record.upstreamEndAt = record.arrivedAt;
    const answer = this.#answer;
    // Plugins may take a while to make their answer of it, in which nothing is asked of the target.
    this.#exchange = null;
    this.#stopCollecting();
    if (this.#mode === "collecting" && answer !== null) this.#answerWhole(answer, this.#parts);
    else if (this.#stream === null) this.#end(answer?.status ?? 0);
    else this.#endStream(this.#stream, answer?.status ?? 0);
  }

  #endStream(stream: StreamedBody | PipedBody, status: number): void {
    stream.end(() => this.#end(status));
  }

  /** Answers with a body that is there, and ends when plugins have made of it what they want. */
  #answerWhole(answer: TargetAnswer, pieces: readonly Piece[]): void {
    try {
      const response = answer.whole(pieces);
      if (response instanceof Promise) {
        this.#answerLater(response, answer);
        return;
      }
      this.#resolve(response);
    } catch (error) {
      this.#notAnswered(error);
    }
    this.#end(answer.status);
  }

  #answerLater(response: Promise<Response>, answer: TargetAnswer): void {
    response
      .then(this.#resolve, (error: unknown) => this.#notAnswered(error))
      .finally(() => this.#end(answer.status));
  }

  /** A plugin could not do what it had begun: half an answer is none. */
  #notAnswered(error: unknown): void {
    this.#scope.report(this.#plan.context, failures.internal(error));
    this.#resolve(hangUp());
  }

  failed(error: ProxyError): void {
    this.#attempts.failed(error);
    if (this.#mode === "streaming") {
      this.#breakOff(error);
      return;
    }
    this.#stopCollecting();
    this.#parts = [];
    this.#answer = null;
    const pause = this.#attempts.pauseAfterFailure(error, this.#bodyState);
    if (pause === null) {
      this.#answerError(this.#withBodyNote(error));
      return;
    }
    this.#retry(pause);
  }

  /** Never ended as if complete: the client must see that the answer broke off. */
  #breakOff(error: ProxyError): void {
    // The target did its part until the client had enough.
    if (error.source === "client") this.#attempts.completed();
    this.#stream?.fail(new Error(error.detail));
    this.#plan.context.record.isBrokenOff = true;
    this.#scope.report(this.#plan.context, error);
    this.#end(error.status);
  }

  /** Says why a failure that could have been retried was not. */
  #withBodyNote(error: ProxyError): ProxyError {
    if (!this.#attempts.isHeldByBody) return error;
    return {
      ...error,
      detail: `${error.detail}; not retried, because the request body was already sent`,
    };
  }

  get #bodyState(): "repeatable" | "gone" {
    return this.#body === null || this.#body.isRepeatable ? "repeatable" : "gone";
  }

  /** An answer that another target may give better is dropped with its connection. */
  #retryInstead(status: number): boolean {
    const pause = this.#attempts.pauseAfterStatus(status, this.#bodyState);
    if (pause === null) return false;
    this.#exchange?.abort();
    this.#retry(pause);
    return true;
  }

  /** Makes the next attempt after as many milliseconds. */
  #retry(pause: number): void {
    this.#mode = "waiting";
    this.#exchange = null;
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (pause < 1) this.#attempt();
    else this.#pause = setTimeout(() => this.#attempt(), pause);
  }

  #answerError(error: ProxyError): void {
    const { context, debugFields } = this.#plan;
    this.#scope.report(context, error);
    context.record.refused(context.reasonOf(error));
    const answer = errorAnswer(context, error);
    context.record.bytesOut = answer.body?.byteLength ?? 0;
    for (const [name, value] of debugFields ?? []) answer.headers.set(name, value);
    if (context.visit === null) this.#resolve(toResponse(answer));
    else {
      const seen = seenByPlugins(context, answer, { source: "gateway", error });
      if (seen instanceof Promise) void seen.then(this.#resolve);
      else this.#resolve(seen);
    }
    this.#end(error.status);
  }

  // What the clock and the client tell.

  tick(now: number): void {
    if (!this.#watchesClient) this.#watchClient();
    if (!this.#outlivesIdle && this.#needsTime(now)) {
      // Bun resets a handler that waits at the idle time-out; from here on our own time-outs rule.
      this.#outlivesIdle = true;
      this.#plan.context.server.timeout(this.#plan.context.request, 0);
    }
    if (now >= this.#totalDeadline) this.#endAll();
    else if (now >= this.#takeDeadline) this.#abortWith(failures.clientStalled);
    else if (now >= this.#tryDeadline) this.#endTry(now);
    else this.#exchange?.tick(now);
  }

  /** All attempts together took too long: the target of the present one too, unless the client is still sending. */
  #endAll(): void {
    const isAwaiting = this.#mode === "waiting" && this.#exchange !== null;
    if (isAwaiting && this.#body?.waitsForClient !== true)
      this.#attempts.failed(failures.requestTimeout);
    this.#abortWith(failures.requestTimeout);
  }

  /** The attempt took too long: another target may be faster. */
  #endTry(now: number): void {
    if (this.#body?.waitsForClient === true) {
      // No target can answer what the client has not sent yet.
      this.#tryDeadline = now + this.#attempts.policy.per_try_timeout;
      this.#exchange?.tick(now);
      return;
    }
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    const wasSent = this.#exchange?.isSent === true;
    this.#exchange?.abort();
    this.failed(wasSent ? failures.responseTimeout : failures.connectTimeout);
  }

  #needsTime(now: number): boolean {
    return (
      this.#body !== null || now - this.#startedAt > this.#plan.context.listener.idleTimeout * 250
    );
  }

  /** Only requests that last a tick are watched: most are answered before, and a listener costs as much as a header walk. */
  #watchClient(): void {
    this.#watchesClient = true;
    const { signal } = this.#plan.context.request;
    if (signal.aborted) this.#clientGone();
    else signal.addEventListener("abort", () => this.#clientGone(), { once: true });
  }

  #clientGone(): void {
    if (this.#mode === "done") return;
    // A target that has answered to the end has worked for no less than for other clients.
    const isWorking = this.#exchange !== null || this.#pause !== null;
    if (isWorking) this.#scope.aborted.note(this.#plan.context);
    this.#abortWith(failures.clientGone);
  }

  /** Cuts everything off; for the worker's end too. */
  #abortWith(error: ProxyError): void {
    this.#exchange?.abort();
    if (this.#mode !== "done") {
      this.#body?.cancel();
      if (this.#mode === "streaming") this.#breakOff(error);
      else this.#answerError(error);
    }
  }

  #stopCollecting(): void {
    if (this.#waitingPlace !== null) this.#scope.collectBudget.unwatch(this.#waitingPlace);
    if (this.#reserved > 0) this.#scope.collectBudget.release(this.#reserved);
    this.#waitingPlace = null;
    this.#reserved = 0;
  }

  #end(status: number): void {
    if (this.#mode === "done") return;
    this.#mode = "done";
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#attempts.end();
    this.#stopCollecting();
    this.#parts = [];
    this.#scope.inFlight.remove(this.#place);
    const { context } = this.#plan;
    if (this.#outlivesIdle) context.server.timeout(context.request, context.listener.idleTimeout);
    if (this.#body !== null) context.record.bytesIn = this.#body.bytes;
    this.#scope.ended(context, status);
  }
}
