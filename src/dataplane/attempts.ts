// The attempts of one request: which target is next, whether there is another one, what targets are told; knows no exchange.
import type { Retries } from "../model/service.ts";
import type { FailureText } from "../shared-memory/target-health.ts";
import type { ProxyError } from "./error.ts";
import { hashKey } from "./hash-key.ts";
import type { Plan } from "./proxied-request.ts";
import type { TargetRuntime } from "./service-runtime.ts";

/** Methods whose request may be carried out twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]);

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
  #tried: Set<string> | null = null;
  #count = 0;
  #usedFresh = false;

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

  /** Chooses a target and begins on it; null when none may take the request. */
  begin(): TargetRuntime | null {
    const { group } = this.#plan.service;
    const target =
      this.#again() ?? this.#stayedWith() ?? group.pick({ key: this.#key, tried: this.#tried });
    if (target === null) return null;
    this.#target = target;
    this.#count++;
    this.#isBegun = true;
    group.enter(target);
    if (group.needsLatency) this.#startedAt = performance.now();
    return target;
  }

  /** After a kept connection that the target had closed: the same target on a connection of its own. */
  #again(): TargetRuntime | null {
    return this.#usedFresh && this.#count === 1 ? this.#target : null;
  }

  /** The target that the client was on before, unless it is down, full or gone. */
  #stayedWith(): TargetRuntime | null {
    const { service, context } = this.#plan;
    const target = service.sticky?.targetOf(context) ?? null;
    if (target === null || this.#tried?.has(target.id) === true) return null;
    return service.group.isUsable(target) ? target : null;
  }

  /** Whether the next attempt must not use a kept connection. */
  get needsFresh(): boolean {
    return this.#usedFresh && this.#count === 1;
  }

  /** The request is over on the present target. */
  end(): void {
    if (!this.#isBegun || this.#target === null) return;
    this.#isBegun = false;
    this.#plan.service.group.leave(this.#target);
  }

  /** The head of an answer has arrived. */
  answered(status: number): void {
    const target = this.#target;
    if (target === null) return;
    const { group } = this.#plan.service;
    group.passive.answered(target.row, status);
    if (group.needsLatency) group.took(target, performance.now() - this.#startedAt);
  }

  /** The present attempt failed; the target is told when the failure is its own. */
  failed(error: ProxyError): void {
    const target = this.#target;
    if (target === null || error.source !== "upstream" || error.retry === "fresh-connection")
      return;
    this.#plan.service.group.passive.failed(target.row, failureOf(error));
  }

  /** Milliseconds until the next attempt may be made; null: the failure stands. */
  pauseAfterFailure(error: ProxyError, body: BodyState): number | null {
    if (error.retry === "fresh-connection") return this.#freshPause(body);
    const reason = reasonOf(error);
    if (reason === null) return null;
    return this.#pause(reason, body, error.retry === "always");
  }

  /** The same for an answer that arrived whole but says that the target cannot serve. */
  pauseAfterStatus(status: number, body: BodyState): number | null {
    return this.#pause(String(status), body, false);
  }

  /** Says nothing about the target: once, at once, and without a token. */
  #freshPause(body: BodyState): number | null {
    if (this.#usedFresh || this.#count > 1) return this.#pause("reset", body, false);
    if (body === "gone" || !this.#mayRepeat()) return null;
    this.#usedFresh = true;
    return 0;
  }

  #pause(reason: string, body: BodyState, isUnsent: boolean): number | null {
    const { policy } = this;
    const retries = this.#count - 1 - (this.#usedFresh ? 1 : 0);
    if (!(policy.on as readonly string[]).includes(reason) || retries >= policy.count) return null;
    if (body === "gone" || (!isUnsent && !this.#mayRepeat())) return null;
    this.#tried ??= new Set();
    if (this.#target !== null) this.#tried.add(this.#target.id);
    const { group } = this.#plan.service;
    // Every target was tried: the last failure says more than "no target is available".
    if (!group.hasOther(this.#tried) || !group.takeToken(policy.budget_percent)) return null;
    // A target that did not take the request costs the next one nothing: no need to wait.
    if (isUnsent && retries === 0) return 0;
    return Math.random() * Math.min(LONGEST_PAUSE_MS, policy.backoff_ms * 2 ** retries);
  }

  #mayRepeat(): boolean {
    return this.policy.methods === "all" || IDEMPOTENT.has(this.#plan.context.method);
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
function failureOf(error: ProxyError): FailureText {
  switch (error.token) {
    case "dns_error":
    case "connection_refused":
    case "connection_timeout":
    case "tls_certificate_error":
    case "tls_protocol_error":
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
