// The upstream attempts of one request: which target is next, whether there is a retry, what counts for and against targets; knows no exchange.
import type { Retries } from "../../model/service.ts";
import type { FailureText } from "../../shared-memory/target-health.ts";
import { failures, type ProxyError } from "../error.ts";
import type { PickRequest } from "../balancer/balancer.ts";
import { hashKey } from "../hash-key.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import type { ClientRequest } from "./client-request.ts";

/** Methods whose request may be carried out twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]);

/** No pause between attempts is longer than this many milliseconds. */
const LONGEST_PAUSE_MS = 2000;

/** What the request body allows: it was not touched or is still there whole, or it cannot be sent again. */
export type BodyState = "repeatable" | "gone";

/** Lives as long as the request. Every attempt that was started is ended, exactly once. */
export class UpstreamAttempts implements PickRequest {
  readonly request: ClientRequest;
  readonly route: RouteRuntime;
  readonly service: ServiceRuntime;
  readonly policy: Retries;
  readonly key: number | null;
  tried: Set<string> | null = null;
  /** Target of the current or last attempt. */
  target: TargetRuntime | null = null;
  /** Whether the last failure stands for no other reason than that the body cannot be sent again. */
  isHeldByBody = false;
  /** Whether the current attempt must not use a kept connection. */
  protected needsFresh = false;
  #isStarted = false;
  #startedAt = 0;
  /** Status of a response that may still break off; 0: none. */
  #openStatus = 0;
  /** Target of the next attempt, which already counts there. */
  #next: TargetRuntime | null = null;
  #usedFresh = false;

  constructor(request: ClientRequest, route: RouteRuntime, service: ServiceRuntime) {
    const { algorithm, retries } = service.service;
    this.request = request;
    this.route = route;
    this.service = service;
    this.policy = route.route.retries ?? retries;
    this.key = algorithm === "consistent_hash" ? hashKey(service.service, request) : null;
    service.group.deposit(this.policy.budget_percent);
  }

  /** Chooses a target and starts an attempt on it. Null when none may take the request: never after a pause was given. */
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

  /** Why `startAttempt` found none at the first attempt. */
  get noTarget(): ProxyError {
    return this.service.group.isFull ? failures.targetsFull : failures.noTarget;
  }

  /** Finds the target for the next attempt and counts it there. */
  #enter(): TargetRuntime | null {
    const { group } = this.service;
    let target = (this.tried === null ? this.#stickyTarget() : null) ?? this.#pick();
    while (target !== null && !group.enter(target)) {
      this.tried ??= new Set();
      this.tried.add(target.id);
      target = this.#pick();
    }
    return target;
  }

  #pick(): TargetRuntime | null {
    return this.service.group.pick(this);
  }

  /** The target that the client was on before, unless it is down, full or gone; one that is drained still takes it. */
  #stickyTarget(): TargetRuntime | null {
    const { service, request } = this;
    if (service.sticky === null) return null;
    const target = service.sticky.targetOf(request.header("cookie"));
    return target !== null && service.group.isUsable(target) ? target : null;
  }

  /** The request is over; a retry that was on its way is not made. */
  protected endAttempts(): void {
    if (this.#next !== null) this.service.group.leave(this.#next);
    this.#next = null;
    this.#leave();
  }

  /** The request goes on counting on its target until the result is called. */
  protected detachTarget(): () => void {
    const { target } = this;
    let isHeld = this.#isStarted && target !== null;
    this.#isStarted = false;
    return () => {
      if (isHeld && target !== null) this.service.group.leave(target);
      isHeld = false;
    };
  }

  #leave(): void {
    if (!this.#isStarted || this.target === null) return;
    this.#isStarted = false;
    this.service.group.leave(this.target);
  }

  /** The response head has arrived. Only a refusal is judged by it: what promises more may still break off. */
  attemptResponded(status: number): void {
    this.request.responseStarted(status);
    const { target } = this;
    if (target === null) return;
    const { group } = this.service;
    if (group.needsLatency) group.recordLatency(target, performance.now() - this.#startedAt);
    this.#openStatus = status;
    if (status >= 400) this.attemptCompleted();
  }

  /** The target has kept its word; counts once for each response. */
  attemptCompleted(): void {
    const status = this.#openStatus;
    this.#openStatus = 0;
    if (status === 0 || this.target === null) return;
    this.service.group.passive.responded(this.target.row, status);
  }

  /** The current attempt failed; it counts against the target when the failure is the target's own. */
  attemptFailed(error: ProxyError): void {
    const { request, target } = this;
    request.attemptFailed(request.reasonOf(error));
    if (target === null || error.source !== "upstream" || error.retry === "fresh-connection")
      return;
    this.#openStatus = 0;
    this.service.group.passive.failed(target.row, failureOf(error));
  }

  /**
   * Milliseconds until the next attempt may be made; null: the failure stands. The current attempt is ended, and the next
   * one has its target: nothing is given up for nothing.
   */
  pauseAfterFailure(error: ProxyError, body: BodyState): number | null {
    const isUnsent = error.retry === "always";
    this.isHeldByBody = false;
    if (error.retry === "fresh-connection" && !this.#usedFresh) return this.#freshPause(body);
    const reason = reasonOf(error);
    return reason === null ? null : this.#pause(reason, { body, isUnsent });
  }

  /** The same for a response that arrived whole but says that the target cannot serve. */
  pauseAfterStatus(status: number, body: BodyState): number | null {
    return this.#pause(String(status), { body, isUnsent: false });
  }

  /** A kept connection that the target had closed says nothing about it: again at once, for free, but only once. */
  #freshPause(body: BodyState): number | null {
    if (!this.#mayRepeat()) return null;
    this.isHeldByBody = body === "gone";
    if (this.isHeldByBody) return null;
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
    // None is left: the last failure says more than "no target is available".
    if (next === null) return null;
    this.isHeldByBody = body === "gone";
    if (this.isHeldByBody || !this.#isAffordable(isUnsent)) {
      this.service.group.leave(next);
      return null;
    }
    this.#leave();
    this.#next = next;
    // A target that did not take the request costs the next one nothing: no need to wait.
    return isUnsent && retries === 0 ? 0 : backOff(policy.backoff_ms, retries, Math.random());
  }

  /** The budget keeps retries from adding to the load of targets; an attempt that reached none has added nothing. */
  #isAffordable(isUnsent: boolean): boolean {
    const { budget_percent: percent } = this.policy;
    if (isUnsent) return percent > 0;
    return this.service.group.withdraw(percent);
  }

  #mayRepeat(): boolean {
    return this.policy.methods === "all" || IDEMPOTENT.has(this.request.upstreamMethod);
  }

  /** Value of Set-Cookie for a response of the current target; null when the client has it already. */
  stickyCookie(): string | null {
    const { sticky } = this.service;
    const { request, target } = this;
    if (sticky === null || target === null) return null;
    if (sticky.targetOf(request.header("cookie")) === target) return null;
    return sticky.setCookie(target, request.clientScheme() === "https");
  }
}

/**
 * Milliseconds before the retry after `retries` others: anything up to twice as much as the time before, so that those who
 * failed together do not come back together. `random` from 0 to below 1.
 */
export function backOff(firstMs: number, retries: number, random: number): number {
  return random * Math.min(LONGEST_PAUSE_MS, firstMs * 2 ** retries);
}

/** The word of `retries.on` that covers a failure; null: no word does. */
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

/** What the API shows of the target. Failures are worded for both; what is not one of those is broken HTTP. */
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
      return error.detail as FailureText;
    case "http_response_timeout":
      return "the target did not respond in time";
    default:
      return "the response was not valid HTTP";
  }
}
