// One WebSocket handshake on its way through a target and back: attempts, the switch or the target's refusal; knows no frame.
import { errorAnswer } from "../error-page.ts";
import { failures, type ProxyError } from "../error.ts";
import type { InFlight, Watched } from "../in-flight.ts";
import { ListNode } from "../linked-list.ts";
import type { Plan } from "../plan.ts";
import { seenByPlugins } from "../own-answer.ts";
import { completeResponse } from "../response-builder.ts";
import { exchangeTimeouts, totalTimeout, upstreamHost } from "../route-runtime.ts";
import { Attempts } from "../attempts.ts";
import { addStickyCookie } from "../sticky.ts";
import type { TargetRuntime } from "../service-runtime.ts";
import { type ConnectionHome, UpstreamConnection } from "../upstream/connection.ts";
import { Exchange, type ExchangeOwner } from "../upstream/exchange.ts";
import { requestHead } from "../upstream/request-writer.ts";
import type { ResponseHead } from "../upstream/response-parser.ts";
import { handshakeProblem, switchedFields } from "./handshake.ts";

/** Largest body of a refusal; nobody waits for a long one. */
const MAX_REFUSAL_BYTES = 1_048_576;

/** A target has switched protocols: what is needed to switch the client too. */
export interface Switched {
  readonly target: TargetRuntime;
  readonly connection: UpstreamConnection;
  /** For the client's 101. */
  readonly fields: [string, string][];
  /** The first bytes that the target sent as frames. */
  readonly rest: Buffer;
  /** Call it when the WebSocket has ended: until then it counts as a request in flight on the target. */
  leave(): void;
}

export interface OpeningOwner {
  readonly inFlight: InFlight;
  /** Switches the client; false when it could not be. Throws TypeError when a field is not valid. */
  switched(plan: Plan, switched: Switched): boolean;
  report(plan: Plan, error: ProxyError): void;
  /** The client has left while a target was asked. */
  aborted(plan: Plan): void;
}

/** Lives until the client is upgraded or answered. Create it and call `begin`; `resolve` gets the Response, if any. */
export class Opening implements ExchangeOwner, Watched {
  readonly #place = new ListNode<Watched>(this);
  readonly #owner: OpeningOwner;
  readonly #plan: Plan;
  readonly #resolve: (response: Response | undefined) => void;
  readonly #totalDeadline: number;
  readonly #abort = (): void => {
    if (this.#attempts.count > 0) this.#owner.aborted(this.#plan);
    this.#stop(failures.clientGone);
  };
  readonly #attempts: Attempts;
  /** When the present attempt must have brought its head. */
  #tryDeadline = Number.POSITIVE_INFINITY;
  /** Waits for the next attempt. */
  #pause: Timer | null = null;
  #exchange: Exchange | null = null;
  #head: ResponseHead | null = null;
  #parts: Buffer[] = [];
  #bytes = 0;
  #isDone = false;

  constructor(owner: OpeningOwner, plan: Plan, resolve: (response: Response | undefined) => void) {
    this.#owner = owner;
    this.#plan = plan;
    this.#resolve = resolve;
    this.#attempts = new Attempts(plan);
    const total = totalTimeout(plan.route, plan.service);
    this.#totalDeadline = total === 0 ? Number.POSITIVE_INFINITY : owner.inFlight.now() + total;
  }

  begin(): void {
    const { context, fields } = this.#plan;
    this.#owner.inFlight.add(this.#place);
    const problem = handshakeProblem(context, fields.bodyLength);
    if (problem !== null) {
      this.#answerError(problem);
      return;
    }
    // Bun resets a handler that waits at the idle time-out; while the target thinks, our own time-outs rule.
    context.server.timeout(context.request, 0);
    const { signal } = context.request;
    if (signal.aborted) this.#abort();
    else signal.addEventListener("abort", this.#abort, { once: true });
    if (!this.#isDone) this.#attempt();
  }

  #attempt(): void {
    const { context, service, route, fields, maxHeadBytes } = this.#plan;
    const target = this.#attempts.begin();
    if (target === null) {
      this.#answerError(this.#attempts.noTarget);
      return;
    }
    const { per_try_timeout: perTry } = this.#attempts.policy;
    if (perTry > 0) this.#tryDeadline = this.#owner.inFlight.now() + perTry;
    const head = requestHead(context, fields, {
      target: this.#plan.target,
      host: upstreamHost(this.#plan, target, context),
      connection: "upgrade",
    });
    const request = {
      head,
      isHead: false,
      body: null,
      timeouts: exchangeTimeouts(route, service),
      maxHeadBytes,
      heads: target.heads,
      times: context.record,
    };
    // Neither one that was used before nor one that is kept: what the two sides take a refused upgrade for may differ.
    const connection = new UpstreamConnection(target.endpoint, NO_HOME);
    this.#exchange = new Exchange(connection, request, this);
    this.#exchange.start(this.#owner.inFlight.now());
  }

  // What the exchange tells.

  upgraded(head: ResponseHead, connection: UpstreamConnection, rest: Buffer): void {
    this.#exchange = null;
    const { target } = this.#attempts;
    this.#attempts.answered(101);
    const fields = switchedFields(this.#plan.context, head);
    if (target === null || !Array.isArray(fields)) {
      connection.destroy();
      const error = Array.isArray(fields) ? failures.noTarget : fields;
      this.#attempts.failed(error);
      this.#answerError(error);
      return;
    }
    this.#attempts.completed();
    const cookie = this.#attempts.stickyCookie();
    if (cookie !== null) fields.push(["Set-Cookie", cookie]);
    const { context } = this.#plan;
    if (context.tellsId) fields.push(["X-Request-Id", context.id]);
    for (const [name, value] of this.#debugFields()) fields.push([name, value]);
    const leave = this.#attempts.handOver();
    try {
      if (!this.#owner.switched(this.#plan, { target, connection, fields, rest, leave })) {
        leave();
        this.#refuseClient(connection);
        return;
      }
      this.#end();
      this.#resolve(undefined);
    } catch (cause) {
      leave();
      connection.destroy();
      this.#answerError({
        ...failures.upgrade("the target sent a field that is not valid"),
        cause,
      });
    }
  }

  /** Bun upgrades HTTP/1.1 only, and no connection that is gone. */
  #refuseClient(connection: UpstreamConnection): void {
    connection.destroy();
    const isGone = this.#plan.context.request.signal.aborted;
    this.#answerError(
      isGone ? failures.clientGone : failures.badRequest("this connection cannot be upgraded"),
    );
  }

  head(head: ResponseHead): void {
    this.#attempts.answered(head.status);
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    this.#head = head;
  }

  content(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#parts.push(chunk);
    if (this.#bytes > MAX_REFUSAL_BYTES)
      this.#stop(
        failures.upgrade("the target refused the WebSocket with an answer that is too long"),
      );
  }

  waiting(): void {}

  finished(): void {
    const head = this.#head;
    if (head === null || this.#isDone) return;
    this.#attempts.completed();
    const fields = new Headers(head.fields);
    const cookie = this.#attempts.stickyCookie();
    if (cookie !== null) addStickyCookie(fields, cookie);
    for (const [name, value] of this.#debugFields()) fields.set(name, value);
    const { status, hasContentType, hasLength } = head;
    const { context } = this.#plan;
    if (context.visit === null)
      this.#answer(completeResponse({ status, fields, hasContentType, hasLength }, this.#parts));
    else {
      const answer = { status, headers: fields, body: Buffer.concat(this.#parts) };
      this.#answer(seenByPlugins(context, answer, { source: "upstream" }));
    }
  }

  failed(error: ProxyError): void {
    this.#head = null;
    this.#parts = [];
    this.#bytes = 0;
    this.#attempts.failed(error);
    // A handshake that was sent may have opened something: only what never arrived is tried again.
    const pause =
      error.retry === "always" ? this.#attempts.pauseAfterFailure(error, "repeatable") : null;
    if (pause === null) {
      this.#answerError(error);
      return;
    }
    this.#exchange = null;
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (pause < 1) this.#attempt();
    else this.#pause = setTimeout(() => this.#attempt(), pause);
  }

  // What the clock and the client tell.

  tick(now: number): void {
    if (now >= this.#totalDeadline) this.#endAll();
    else if (now >= this.#tryDeadline) this.#endTry();
    else this.#exchange?.tick(now);
  }

  #endAll(): void {
    if (this.#exchange !== null && this.#head === null)
      this.#attempts.failed(failures.requestTimeout);
    this.#stop(failures.requestTimeout);
  }

  /** The attempt took too long. */
  #endTry(): void {
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    const wasSent = this.#exchange?.isSent === true;
    this.#exchange?.abort();
    this.failed(wasSent ? failures.responseTimeout : failures.connectTimeout);
  }

  #stop(error: ProxyError): void {
    this.#exchange?.abort();
    this.#answerError(error);
  }

  #answerError(error: ProxyError): void {
    if (this.#isDone) return;
    this.#owner.report(this.#plan, error);
    const { context } = this.#plan;
    const answer = errorAnswer(context, error);
    for (const [name, value] of this.#debugFields()) answer.headers.set(name, value);
    // RFC 6455 section 4.4: says which versions would do.
    if (error === failures.webSocketVersion) answer.headers.set("Sec-WebSocket-Version", "13");
    this.#answer(seenByPlugins(context, answer, { source: "gateway", error }));
  }

  #answer(response: Response | Promise<Response>): void {
    const { context } = this.#plan;
    this.#end();
    context.server.timeout(context.request, context.listener.idleTimeout);
    if (response instanceof Promise) void response.then(this.#resolve);
    else this.#resolve(response);
  }

  #end(): void {
    this.#isDone = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#attempts.end();
    this.#exchange = null;
    this.#parts = [];
    this.#plan.context.request.signal.removeEventListener("abort", this.#abort);
    this.#owner.inFlight.remove(this.#place);
  }

  #debugFields(): readonly (readonly [string, string])[] {
    const { debugFields } = this.#plan;
    if (debugFields === null) return [];
    return [...debugFields, ["X-Sluice-Target", this.#attempts.target?.id ?? ""] as const].filter(
      ([, value]) => value !== "",
    );
  }
}

/** A connection for one handshake is never lent out again. */
const NO_HOME: ConnectionHome = { takeBack: (connection) => connection.destroy(), closed() {} };
