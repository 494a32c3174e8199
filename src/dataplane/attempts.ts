// The attempts of one request: which target is next, whether there is another one, what targets are told; knows no exchange.
import type { Retries } from "../model/service.ts";
import type { FailureText } from "../shared-memory/target-health.ts";
import { failures, type ProxyError } from "./error.ts";
import { hashKey } from "./hash-key.ts";
import type { Plan } from "./plan.ts";
import type { TargetRuntime } from "./service-runtime.ts";

/** Methods whose request may be carried out twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]);

/** No pause between attempts is longer than this many milliseconds. */
const LONGEST_PAUSE_MS = 2000;

/** What the body allows: it was not touched, or is still there whole. */
export type BodyState = "repeatable" | "gone";

/** Lives as long as the request. Every target that was begun is ended, exactly once. */
export class Attempts {
  readonly policy: Retries;
  readonly #plan: Plan;
  readonly #key: number | null;
  #target: TargetRuntime | null = null;
  #isBegun = false;
  #startedAt = 0;
  /** Status of an answer that may still break off; 0: none. */
  #openStatus = 0;
  #tried: Set<string> | null = null;
  /** Where the next attempt will be made; it has a place there already. */
  #next: TargetRuntime | null = null;
  #count = 0;
  #usedFresh = false;
  #isFresh = false;
  #isHeldByBody = false;

  constructor(plan: Plan) {
    const { service } = plan.service;
    this.#plan = plan;
    this.policy = plan.route.route.retries ?? service.retries;
    this.#key = service.algorithm === "consistent_hash" ? hashKey(service, plan.context) : null;
    plan.service.group.payIn(this.policy.budget_percent);
  }

  /** How many were begun. */
  get count(): number {
    return this.#count;
  }

  /** The target of the present or last attempt. */
  get target(): TargetRuntime | null {
    return this.#target;
  }

  /** Whether the present attempt must not use a kept connection. */
  get needsFresh(): boolean {
    return this.#isFresh;
  }

  /** Whether the last failure stands for no other reason than that the body cannot be sent again. */
  get isHeldByBody(): boolean {
    return this.#isHeldByBody;
  }

  /** Chooses a target and begins on it. Null when none may take the request: never after a pause was given. */
  begin(): TargetRuntime | null {
    const target = this.#next ?? this.#enter();
    this.#next = null;
    if (target === null) return null;
    this.#isFresh = this.#usedFresh && target === this.#target;
    this.#target = target;
    this.#count++;
    this.#isBegun = true;
    this.#plan.context.record.began(target);
    if (this.#plan.service.group.needsLatency) this.#startedAt = performance.now();
    return target;
  }

  /** Why `begin` found none at the first attempt. */
  get noTarget(): ProxyError {
    return this.#plan.service.group.isFull ? failures.targetsFull : failures.noTarget;
  }

  /** Finds the target for the next attempt and takes a place on it. */
  #enter(): TargetRuntime | null {
    const { group } = this.#plan.service;
    let target = (this.#tried === null ? this.#stayedWith() : null) ?? this.#pick();
    while (target !== null && !group.enter(target)) {
      this.#tried ??= new Set();
      this.#tried.add(target.id);
      target = this.#pick();
    }
    return target;
  }

  #pick(): TargetRuntime | null {
    return this.#plan.service.group.pick({ key: this.#key, tried: this.#tried });
  }

  /** The target that the client was on before, unless it is down, full or gone; one that is drained still takes it. */
  #stayedWith(): TargetRuntime | null {
    const { service, context } = this.#plan;
    const target = service.sticky?.targetOf(context) ?? null;
    return target !== null && service.group.isUsable(target) ? target : null;
  }

  /** The request is over; a retry that was on its way is not made. */
  end(): void {
    if (this.#next !== null) this.#plan.service.group.leave(this.#next);
    this.#next = null;
    this.#leave();
  }

  /** Leaves the place on the target to somebody who needs it for longer, and who calls the result when that is over. */
  handOver(): () => void {
    const target = this.#target;
    let isHeld = this.#isBegun && target !== null;
    this.#isBegun = false;
    return () => {
      if (isHeld && target !== null) this.#plan.service.group.leave(target);
      isHeld = false;
    };
  }

  #leave(): void {
    if (!this.#isBegun || this.#target === null) return;
    this.#isBegun = false;
    this.#plan.service.group.leave(this.#target);
  }

  /** The head of an answer has arrived. Only a refusal is judged by it: what promises more may still break off. */
  answered(status: number): void {
    this.#plan.context.record.answered(status);
    const target = this.#target;
    if (target === null) return;
    const { group } = this.#plan.service;
    if (group.needsLatency) group.took(target, performance.now() - this.#startedAt);
    this.#openStatus = status;
    if (status >= 400) this.completed();
  }

  /** The target has kept its word; counts once for each answer. */
  completed(): void {
    const status = this.#openStatus;
    this.#openStatus = 0;
    if (status === 0 || this.#target === null) return;
    this.#plan.service.group.passive.answered(this.#target.row, status);
  }

  /** The present attempt failed; the target is told when the failure is its own. */
  failed(error: ProxyError): void {
    const { context } = this.#plan;
    context.record.failed(context.reasonOf(error));
    const target = this.#target;
    if (target === null || error.source !== "upstream" || error.retry === "fresh-connection")
      return;
    this.#openStatus = 0;
    this.#plan.service.group.passive.failed(target.row, failureOf(error));
  }

  /**
   * Milliseconds until the next attempt may be made; null: the failure stands. The present attempt is ended, and the next
   * one has its place: nothing is given up for nothing.
   */
  pauseAfterFailure(error: ProxyError, body: BodyState): number | null {
    const isUnsent = error.retry === "always";
    this.#isHeldByBody = false;
    if (error.retry === "fresh-connection" && !this.#usedFresh) return this.#freshPause(body);
    const reason = reasonOf(error);
    return reason === null ? null : this.#pause(reason, { body, isUnsent });
  }

  /** The same for an answer that arrived whole but says that the target cannot serve. */
  pauseAfterStatus(status: number, body: BodyState): number | null {
    return this.#pause(String(status), { body, isUnsent: false });
  }

  /** A kept connection that the target had closed says nothing about it: again at once, for free, but only once. */
  #freshPause(body: BodyState): number | null {
    if (!this.#mayRepeat()) return null;
    this.#isHeldByBody = body === "gone";
    if (this.#isHeldByBody) return null;
    this.#usedFresh = true;
    this.#next = this.#target;
    this.#isBegun = false;
    return 0;
  }

  #pause(
    reason: string,
    { body, isUnsent }: { readonly body: BodyState; readonly isUnsent: boolean },
  ): number | null {
    const { policy } = this;
    const retries = this.#count - 1 - (this.#usedFresh ? 1 : 0);
    if (!(policy.on as readonly string[]).includes(reason) || retries >= policy.count) return null;
    if (!isUnsent && !this.#mayRepeat()) return null;
    this.#tried ??= new Set();
    if (this.#target !== null) this.#tried.add(this.#target.id);
    const next = this.#enter();
    // Nobody is left: the last failure says more than "no target is available".
    if (next === null) return null;
    this.#isHeldByBody = body === "gone";
    if (this.#isHeldByBody || !this.#isAffordable(isUnsent)) {
      this.#plan.service.group.leave(next);
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
    return this.#plan.service.group.takeToken(percent);
  }

  #mayRepeat(): boolean {
    return this.policy.methods === "all" || IDEMPOTENT.has(this.#plan.context.upstreamMethod);
  }

  /** Value of Set-Cookie for an answer of the present target; null when the client has it already. */
  stickyCookie(): string | null {
    const { service, context } = this.#plan;
    const { sticky } = service;
    const target = this.#target;
    if (sticky === null || target === null || sticky.targetOf(context) === target) return null;
    return sticky.setCookie(target, context.clientScheme() === "https");
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

/** What people read about the target. Failures are worded for both; what is not one of those is broken HTTP. */
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
      return "the target did not answer in time";
    default:
      return "the answer was not valid HTTP";
  }
}
