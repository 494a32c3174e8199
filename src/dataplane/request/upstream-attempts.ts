// The upstream attempts of one request: target selection, retries, passive health checks; knows no exchange.
import type { Retries } from "../../model/service.ts";
import type { FailureText } from "../../shared-memory/target-health.ts";
import { failures, type ProxyError, wantsFresh } from "../error.ts";
import type { PickRequest } from "../balancer/balancer.ts";
import { hashKey } from "../hash-key.ts";
import type { RequestBuffer } from "../request-buffers.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import type { RequestBody } from "../upstream/request-body.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import type { ExchangeTimeouts } from "../upstream/transport.ts";
import { requestHead } from "../upstream/request-writer.ts";
import type { ClientRequest } from "./client-request.ts";
import type { GrpcCall } from "./grpc-call.ts";
import { withClientAddress } from "./redirect-address.ts";
import { exchangeTimeouts, upstreamHost } from "./upstream-request.ts";

/** RFC 9110 section 9.2.2. */
const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]);

/** Longest pause between attempts. */
const LONGEST_PAUSE_MS = 2000;

/** Whether the request body can be sent again. */
export type BodyState = "repeatable" | "gone";

/** Lives as long as the request. Every started attempt ends exactly once. */
export class UpstreamAttempts implements PickRequest {
  readonly request: ClientRequest;
  readonly route: RouteRuntime;
  readonly service: ServiceRuntime;
  readonly policy: Retries;
  readonly key: number | null;
  /** Of each attempt. */
  timeouts: ExchangeTimeouts;
  tried: Set<string> | null = null;
  /** Target of the current or last attempt. */
  target: TargetRuntime | null = null;
  /** Null: the request has none. */
  body: RequestBody | null = null;
  /** The body of a route with `request_buffering`; null: not buffered. */
  #buffer: RequestBuffer | null = null;
  #isReading = false;
  /** Null: not gRPC. */
  grpc: GrpcCall | null = null;
  /** Whether only the body prevents a retry of the last failure. */
  isBlockedByBody = false;
  /** Whether the current attempt must use a new connection. */
  protected needsFresh = false;
  #isStarted = false;
  #startedAt = 0;
  /** Status of an incomplete response; 0: none. */
  #openStatus = 0;
  /** Target of the next attempt, where the request already counts. */
  #next: TargetRuntime | null = null;
  #usedFresh = false;

  constructor(request: ClientRequest, route: RouteRuntime, service: ServiceRuntime) {
    const { algorithm, retries } = service.service;
    this.request = request;
    this.route = route;
    this.service = service;
    this.policy = route.route.retries ?? retries;
    this.key = algorithm === "consistent_hash" ? hashKey(service.service, request) : null;
    this.timeouts =
      route.timeouts === null ? service.timeouts : exchangeTimeouts(route.timeouts, service);
    service.group.deposit(this.policy.budget_percent);
  }

  /** Selects a target and starts an attempt. Null when none is available, which cannot happen after a pause. */
  startAttempt(): TargetRuntime | null {
    const target = this.#next ?? this.#enter();
    this.#next = null;
    if (target === null) return null;
    this.needsFresh = this.#usedFresh && target === this.target;
    this.target = target;
    this.#isStarted = true;
    this.request.attemptStarted(target);
    if (this.service.group.needsLatency) this.#startedAt = performance.now();
    return target;
  }

  /** The error when the first `startAttempt` finds no target. */
  get noTarget(): ProxyError {
    return this.service.group.isFull ? failures.targetsFull : failures.noTarget;
  }

  /** Selects the target of the next attempt and counts the request there. */
  #enter(): TargetRuntime | null {
    const { group } = this.service;
    const isSticky = this.tried === null && this.service.sticky !== null;
    let target = (isSticky ? this.#stickyTarget() : null) ?? group.pick(this);
    while (target !== null && !group.enter(target)) {
      this.tried ??= new Set();
      this.tried.add(target.id);
      target = group.pick(this);
    }
    return target;
  }

  /** The target of the sticky cookie, also a drained one, unless it is unhealthy, full or deleted. */
  #stickyTarget(): TargetRuntime | null {
    const { service, request } = this;
    if (service.sticky === null) return null;
    const target = service.sticky.targetOf(request.header("cookie"));
    return target !== null && service.group.isUsable(target) ? target : null;
  }

  /** Adds to the error why the request was not retried. */
  protected withBodyNote(error: ProxyError): ProxyError {
    if (!this.isBlockedByBody) return error;
    return {
      ...error,
      detail: `${error.detail}; not retried, because the request body was already sent`,
    };
  }

  /** Ends the request's attempts and cancels a pending retry. */
  protected endAttempts(): void {
    const { group } = this.service;
    if (this.#next !== null) group.leave(this.#next);
    this.#next = null;
    if (this.#isStarted && this.target !== null) group.leave(this.target);
    this.#isStarted = false;
  }

  /** The request counts on its target until the returned function is called. */
  protected detachTarget(): () => void {
    const { target } = this;
    let isCounted = this.#isStarted && target !== null;
    this.#isStarted = false;
    return () => {
      if (isCounted && target !== null) this.service.group.leave(target);
      isCounted = false;
    };
  }

  /**
   * Reads the body before the first attempt where the route says so: targets that need its length get it, and it can be sent
   * again. False: it does not, and `bodyBuffered` is not called.
   */
  protected buffersBody(body: RequestBody): boolean {
    if (this.grpc !== null || this.route.route.request_buffering !== "on") return false;
    this.#bufferBody(body);
    return true;
  }

  #bufferBody(body: RequestBody): void {
    const { request } = this;
    this.#buffer = request.worker.requestBuffers.create();
    this.#isReading = true;
    body.store(this.#buffer, (error) => {
      this.#isReading = false;
      request.upstreamBodyLength = body.bytes === 0 ? null : body.bytes;
      if (body.bytes === 0) this.#dropBody();
      this.bodyBuffered(error);
    });
  }

  protected bodyBuffered(_error: ProxyError | null): void {}

  /** An empty body needs no file, and is none. */
  #dropBody(): void {
    this.#buffer?.free();
    this.body = null;
  }

  protected endBody(body: RequestBody): void {
    this.request.bytesIn = body.bytes;
    this.#buffer?.free();
  }

  /** The failure when the client of a body that is read before is too slow, else null. */
  protected readingOverdue(now: number): ProxyError | null {
    return this.#isReading ? (this.body?.overdue(now, 0) ?? null) : null;
  }

  protected get bodyState(): BodyState {
    return this.body === null || this.body.isRepeatable ? "repeatable" : "gone";
  }

  requestHead(): string {
    const { request, target } = this;
    const isKept = this.service.service.keepalive.size !== 0;
    const host = target === null ? "" : upstreamHost(this, target);
    return requestHead(request, host, isKept ? "keep" : "close");
  }

  /** The head as the client gets it, where it has an address. */
  protected forClient(head: ResponseHead): ResponseHead {
    return withClientAddress(head, this);
  }

  /** The response head has arrived. An error status completes the attempt; other responses may still break off. */
  attemptResponded(status: number): void {
    const { target, request } = this;
    request.headAt = request.receivedAt;
    request.upstreamStatus = status;
    if (target === null) return;
    const { group } = this.service;
    if (group.needsLatency) group.recordLatency(target, performance.now() - this.#startedAt);
    this.#openStatus = status;
    if (status >= 400) this.attemptCompleted();
  }

  /** The target has responded completely; counts once for each response. */
  attemptCompleted(): void {
    const status = this.#openStatus;
    this.#openStatus = 0;
    if (status === 0 || this.target === null) return;
    this.service.group.responded(this.target, status);
  }

  /** The trailers of the response have another status than its head, as an HTTP status. */
  protected attemptTrailed(status: number): void {
    this.request.upstreamStatus = status;
    if (this.#openStatus !== 0) this.#openStatus = status;
  }

  /** The current attempt failed; counts against the target if it is at fault. */
  attemptFailed(error: ProxyError): void {
    const { request, target } = this;
    request.attemptFailed(request.reasonOf(error));
    const isCounted = !wantsFresh(error) && error.isRepeated !== true;
    if (target === null || error.source !== "upstream" || !isCounted) return;
    this.#openStatus = 0;
    this.service.group.passive.failed(target.row, failureOf(error));
  }

  /**
   * Milliseconds before the next attempt; null: no retry. Ends the current attempt and selects the next
   * target, so that a retry is never announced without one.
   */
  pauseAfterFailure(error: ProxyError, body: BodyState): number | null {
    const isUnsent = error.retry === "always";
    this.isBlockedByBody = false;
    if (wantsFresh(error) && !this.#usedFresh)
      return this.#freshPause(body, error.retry === "fresh-connection-unread");
    const reason = reasonOf(error);
    return reason === null ? null : this.#pause(reason, { body, isUnsent });
  }

  /** The same for a response with a status of `retries.on`. */
  pauseAfterStatus(status: number, body: BodyState): number | null {
    return this.#pause(String(status), { body, isUnsent: false });
  }

  /** The target had closed an idle connection: retries at once, outside the budget, but only once. */
  #freshPause(body: BodyState, isUnread: boolean): number | null {
    if (!isUnread && !this.#mayRepeat()) return null;
    this.isBlockedByBody = body === "gone";
    if (this.isBlockedByBody) return null;
    this.#usedFresh = true;
    this.#next = this.target;
    this.#isStarted = false;
    return 0;
  }

  #pause(
    reason: string,
    { body, isUnsent }: { readonly body: BodyState; readonly isUnsent: boolean },
  ): number | null {
    const { policy, request } = this;
    const retries = request.attempts - 1 - (this.#usedFresh ? 1 : 0);
    if (!(policy.on as readonly string[]).includes(reason) || retries >= policy.count) return null;
    if (!isUnsent && !this.#mayRepeat()) return null;
    this.tried ??= new Set();
    if (this.target !== null) this.tried.add(this.target.id);
    const next = this.#enter();
    // The last failure says more than "no target is available".
    if (next === null) return null;
    this.isBlockedByBody = body === "gone";
    if (this.isBlockedByBody || !this.#isAffordable(isUnsent)) {
      this.service.group.leave(next);
      return null;
    }
    this.endAttempts();
    this.#next = next;
    // The request reached no target: no need to wait.
    return isUnsent && retries === 0 ? 0 : backOff(policy.backoff_ms, retries, Math.random());
  }

  /** The retry budget limits extra load; an attempt that reached no target has added none. */
  #isAffordable(isUnsent: boolean): boolean {
    const { budget_percent: percent } = this.policy;
    if (isUnsent) return percent > 0;
    return this.service.group.withdraw(percent);
  }

  #mayRepeat(): boolean {
    return this.policy.methods === "all" || IDEMPOTENT.has(this.request.upstreamMethod);
  }

  /** Value of Set-Cookie for the current target; null when the client has it already. */
  stickyCookie(): string | null {
    const { sticky } = this.service;
    const { request, target } = this;
    if (sticky === null || target === null) return null;
    if (sticky.targetOf(request.header("cookie")) === target) return null;
    return sticky.setCookie(target, request.clientScheme() === "https");
  }
}

/**
 * Milliseconds before the retry after `retries` others: exponential back-off with full jitter, so that requests that
 * failed together do not retry together. `random` from 0 to below 1.
 */
export function backOff(firstMs: number, retries: number, random: number): number {
  return random * Math.min(LONGEST_PAUSE_MS, firstMs * 2 ** retries);
}

/** The value of `retries.on` for a failure; null: none. */
function reasonOf(error: ProxyError): string | null {
  if (error.retry === "always") return "connect";
  if (error.source !== "upstream") return null;
  switch (error.token) {
    case "connection_terminated":
    case "http_response_incomplete":
      return "reset";
    case "http_response_timeout":
    case "connection_read_timeout":
      return "timeout";
    default:
      return null;
  }
}

/** The failure for `last_error` of the target; other tokens mean invalid HTTP. */
export function failureOf(error: ProxyError): FailureText {
  switch (error.token) {
    case "dns_error":
    case "connection_refused":
    case "connection_timeout":
    case "tls_certificate_error":
    case "tls_protocol_error":
    case "tls_alert_received":
    case "proxy_configuration_error":
    case "connection_terminated":
    case "http_response_incomplete":
    case "connection_read_timeout":
    case "connection_write_timeout":
    case "connection_limit_reached":
      return error.detail as FailureText;
    case "http_response_timeout":
      return "the target did not respond in time";
    default:
      return error === failures.noHttp2
        ? "the target does not speak HTTP/2"
        : "the response was not valid HTTP";
  }
}
