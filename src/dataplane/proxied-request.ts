// One client request on its way through a target and back: attempts, collecting or streaming the answer, the end; knows no routing.
import { Attempts } from "./attempts.ts";
import type { Collecting } from "./collecting.ts";
import { errorResponse } from "./error-page.ts";
import { failures, type ProxyError } from "./error.ts";
import { silentOpening, takesOpening } from "./event-stream.ts";
import type { Watched } from "./in-flight.ts";
import { ListNode } from "./linked-list.ts";
import type { RequestContext } from "./request-context.ts";
import { completeResponse, type Piece, StreamedBody } from "./response-builder.ts";
import {
  exchangeTimeouts,
  type RouteRuntime,
  totalTimeout,
  upstreamHost,
} from "./route-runtime.ts";
import type { ServiceRuntime } from "./service-runtime.ts";
import { Exchange, type ExchangeOwner } from "./upstream/exchange.ts";
import { RequestBody } from "./upstream/request-body.ts";
import { type ForwardedFields, requestHead } from "./upstream/request-writer.ts";
import type { ResponseHead } from "./upstream/response-parser.ts";
import { addStickyCookie } from "./sticky.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** Everything that was decided before the first attempt. */
export interface Plan {
  readonly context: RequestContext;
  readonly route: RouteRuntime;
  readonly service: ServiceRuntime;
  readonly fields: ForwardedFields;
  /** Path and query upstream. */
  readonly target: string;
  readonly maxHeadBytes: number;
  readonly bodyReadTimeout: number;
  /** Fields for the response that say who answered; null unless asked for. */
  readonly debugFields: readonly (readonly [string, string])[] | null;
}

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
  /** Waits for the next attempt. */
  #pause: Timer | null = null;
  #mode: Mode = "waiting";
  #head: ResponseHead | null = null;
  #parts: Piece[] = [];
  #reserved = 0;
  /** Place among the bodies that are waited for; null until this one is. */
  #waitingPlace: ListNode<Collecting> | null = null;
  #stream: StreamedBody | null = null;
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
    this.#body = plan.fields.bodyLength === null ? null : this.#requestBody(plan.fields.bodyLength);
  }

  #requestBody(length: number): RequestBody | null {
    const { context, bodyReadTimeout } = this.#plan;
    const stream = context.request.body;
    if (stream === null) return null;
    return new RequestBody({
      stream,
      length,
      maxBytes: context.listener.maxBodyBytes,
      readTimeout: bodyReadTimeout,
      now: this.#scope.inFlight.now,
    });
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
      isHead: context.method === "HEAD",
      body: this.#body,
      timeouts: exchangeTimeouts(route, service),
      maxHeadBytes,
      heads: target.heads,
    };
    this.#exchange = new Exchange(target.pool.lease(this.#attempts.needsFresh), request, this);
    this.#exchange.start(this.#scope.inFlight.now());
  }

  // What the exchange tells.

  head(head: ResponseHead): void {
    this.#attempts.answered(head.status);
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (head.status >= 400 && this.#retryInstead(head.status)) return;
    this.#head = head;
    // Events go on for ever: nobody would wait for their end to say that the target works.
    if (head.isEventStream) this.#attempts.completed();
    const { collect_bytes: limit } = this.#plan.service.service;
    if (head.isEventStream || head.framing === "close" || head.length > limit)
      this.#startStreaming();
    else if (head.framing === "length" && !this.#reserve(head.length)) this.#startStreaming();
    else this.#mode = "collecting";
  }

  #reserve(bytes: number): boolean {
    if (!this.#scope.collectBudget.reserve(bytes)) return false;
    this.#reserved = bytes;
    return true;
  }

  content(chunk: Buffer): void {
    if (this.#mode === "collecting") this.#parts.push(chunk);
    else if (this.#stream !== null && !this.#stream.push(chunk)) this.#exchange?.pause();
  }

  waiting(): void {
    if (this.#mode === "streaming") this.#openEventStream();
    if (this.#mode !== "collecting") return;
    // A body whose end is unknown and did not come with its beginning may take any time.
    if (this.#head?.framing !== "length") {
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
    const head = this.#head;
    if (head === null || this.#mode === "streaming" || this.#mode === "done") return;
    this.#stopCollecting();
    const stream = new StreamedBody({
      wanted: () => this.#exchange?.resume(this.#scope.inFlight.now()),
      cancelled: () => this.#clientGone(),
    });
    const response = new Response(stream.stream, {
      status: head.status,
      headers: this.#fieldsOf(head),
    });
    this.#mode = "streaming";
    this.#stream = stream;
    for (const part of this.#parts) stream.push(part);
    this.#parts = [];
    this.#resolve(response);
  }

  #openEventStream(): void {
    const stream = this.#stream;
    if (stream?.isEmpty === true && this.#head !== null && takesOpening(this.#head))
      stream.push(silentOpening);
  }

  finished(): void {
    this.#attempts.completed();
    if (this.#mode === "collecting" && this.#head !== null) {
      const head = this.#head;
      const response = completeResponse(
        {
          status: head.status,
          fields: this.#fieldsOf(head),
          hasContentType: head.hasContentType,
          hasLength: head.hasLength,
          isHead: this.#plan.context.method === "HEAD",
        },
        this.#parts,
      );
      this.#resolve(response);
    } else {
      this.#stream?.end();
    }
    this.#end();
  }

  failed(error: ProxyError): void {
    this.#attempts.failed(error);
    if (this.#mode === "streaming") {
      this.#breakOff(error);
      return;
    }
    this.#stopCollecting();
    this.#parts = [];
    this.#head = null;
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
    this.#scope.report(this.#plan.context, error);
    this.#end();
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
    this.#scope.report(this.#plan.context, error);
    const response = errorResponse(this.#plan.context, error);
    for (const [name, value] of this.#plan.debugFields ?? []) response.headers.set(name, value);
    this.#resolve(response);
    this.#end();
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
    this.#scope.aborted.note(this.#plan.context.clientAddress());
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

  #end(): void {
    if (this.#mode === "done") return;
    this.#mode = "done";
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#attempts.end();
    this.#stopCollecting();
    this.#parts = [];
    this.#scope.inFlight.remove(this.#place);
    const { context } = this.#plan;
    if (this.#outlivesIdle) context.server.timeout(context.request, context.listener.idleTimeout);
    this.#scope.ended(context);
  }

  /** The target's fields, and ours when somebody looks for what happened. */
  #fieldsOf(head: ResponseHead): Headers {
    const { debugFields, service } = this.#plan;
    const cookie = service.sticky === null ? null : this.#attempts.stickyCookie();
    if (debugFields === null && cookie === null) return head.fields;
    const fields = new Headers(head.fields);
    if (cookie !== null) addStickyCookie(fields, cookie);
    for (const [name, value] of debugFields ?? []) fields.set(name, value);
    if (debugFields !== null) fields.set("X-Sluice-Target", this.#attempts.target?.id ?? "");
    return fields;
  }
}
