// Proxies one WebSocket handshake: upstream attempts, the upgrade or the target's refusal; knows no frame.
import { failures, type ProxyError } from "../error.ts";
import type { InFlightEntry } from "../in-flight.ts";
import type { ClientRequest } from "../request/client-request.ts";
import { joinUpgraded } from "../request/join-upgraded.ts";
import { respondError, respondRefusal } from "../request/respond.ts";
import { UpstreamAttempts } from "../request/upstream-attempts.ts";
import { upstreamHost } from "../request/upstream-request.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime } from "../service-runtime.ts";
import { NO_POOL, UpstreamConnection } from "../upstream/connection.ts";
import { Exchange } from "../upstream/exchange.ts";
import type { ExchangeOwner } from "../upstream/transport.ts";
import { requestHead } from "../upstream/request-writer.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import { reservedBits } from "./frame-follower.ts";
import { handshakeProblem, upgradeFields } from "./handshake-fields.ts";

/** Largest body of a target's refusal. */
const MAX_REFUSAL_BYTES = 1_048_576;

/** Lives until the client is upgraded or has its response. Create it and call `begin`. */
export class WebSocketHandshake extends UpstreamAttempts implements ExchangeOwner, InFlightEntry {
  previous: InFlightEntry | null = null;
  next: InFlightEntry | null = null;
  isListed = false;
  /** Null: plugins see a refusal once it is complete. */
  readonly draft = null;
  readonly #totalDeadline: number;
  readonly #abort = (): void => {
    const { request } = this;
    if (request.attempts > 0 && !request.isCopy) request.worker.aborted.note(request);
    this.#stop(failures.clientGone);
  };
  /** Deadline for the response head of the current attempt. */
  #tryDeadline = Number.POSITIVE_INFINITY;
  /** The pause before the next attempt. */
  #pause: Timer | null = null;
  #exchange: Exchange | null = null;
  #head: ResponseHead | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isDone = false;

  /** Call `writeUpstreamFields` before. */
  constructor(request: ClientRequest, route: RouteRuntime, service: ServiceRuntime) {
    super(request, route, service);
    const total = route.timeouts?.request_timeout ?? service.service.request_timeout;
    this.#totalDeadline =
      total === 0 ? Number.POSITIVE_INFINITY : request.worker.inFlight.now() + total;
  }

  begin(): void {
    const { request } = this;
    request.worker.inFlight.add(this);
    const problem = handshakeProblem(request);
    if (problem !== null) {
      this.#respondError(problem);
      return;
    }
    // Bun resets a waiting request at the idle timeout; here our own timeouts apply.
    request.stream.suspendIdleTimeout();
    const { signal } = request.stream;
    if (signal.aborted) this.#abort();
    else signal.addEventListener("abort", this.#abort, { once: true });
    if (!this.#isDone) this.#attempt();
  }

  #attempt(): void {
    const target = this.startAttempt();
    if (target === null) {
      this.#respondError(this.noTarget);
      return;
    }
    const { inFlight } = this.request.worker;
    const { per_try_timeout: perTry } = this.policy;
    if (perTry > 0) this.#tryDeadline = inFlight.now() + perTry;
    // A connection of its own: gateway and target may disagree about the state after a refused upgrade.
    const connection = new UpstreamConnection(target.endpoint, NO_POOL);
    this.#exchange = new Exchange(connection, target.heads, this);
    this.#exchange.start(inFlight.now());
  }

  // Called by the exchange.

  override requestHead(): string {
    const { request, target } = this;
    const host = target === null ? "" : upstreamHost(this, target);
    return requestHead(request, host, { upgrade: "websocket" });
  }

  // Events of the exchange.

  onUpgraded(head: ResponseHead, connection: UpstreamConnection, rest: Buffer): void {
    this.#exchange = null;
    this.attemptResponded(101);
    const fields = upgradeFields(this.request, head);
    if (!Array.isArray(fields)) {
      connection.destroy();
      this.attemptFailed(fields);
      this.#respondError(fields);
      return;
    }
    this.attemptCompleted();
    const frames = reservedBits(head.headers.get("sec-websocket-extensions"));
    const parts = { protocol: "websocket", fields, frames, connection, rest };
    const problem = joinUpgraded(this, this.detachTarget(), parts);
    if (problem === null) this.#end();
    else this.#respondError(problem);
  }

  onHead(head: ResponseHead): void {
    this.attemptResponded(head.status);
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    this.#head = head.hasLocation ? this.forClient(head) : head;
  }

  onContent(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#pieces.push(chunk);
    if (this.#bytes > MAX_REFUSAL_BYTES)
      this.#stop(
        failures.upgrade("the target refused the WebSocket with a response that is too long"),
      );
  }

  onWaiting(): void {}

  onFinished(): void {
    const head = this.#head;
    if (head === null || this.#isDone) return;
    this.attemptCompleted();
    const pieces = this.#pieces;
    this.#end();
    this.request.stream.restoreIdleTimeout(this.request.listener.idleTimeout);
    respondRefusal(this, head, pieces);
  }

  onFailed(error: ProxyError): void {
    this.#head = null;
    this.#pieces = [];
    this.#bytes = 0;
    this.attemptFailed(error);
    // A handshake that reached the target may have opened a session there: only unsent ones are retried.
    const pause = error.retry === "always" ? this.pauseAfterFailure(error, "repeatable") : null;
    if (pause === null) {
      this.#respondError(error);
      return;
    }
    this.#exchange = null;
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    if (pause < 1) this.#attempt();
    else this.#pause = setTimeout(() => this.#attempt(), pause);
  }

  // Timer and client events.

  tick(now: number): void {
    if (now >= this.#totalDeadline) this.#endAll();
    else if (now >= this.#tryDeadline) this.#endTry();
    else this.#exchange?.tick(now);
  }

  #endAll(): void {
    if (this.#exchange !== null && this.#head === null) this.attemptFailed(failures.requestTimeout);
    this.#stop(failures.requestTimeout);
  }

  /** `per_try_timeout` has passed. */
  #endTry(): void {
    this.#tryDeadline = Number.POSITIVE_INFINITY;
    const wasSent = this.#exchange?.isSent === true;
    this.#exchange?.abort();
    this.onFailed(wasSent ? failures.responseTimeout : failures.connectTimeout);
  }

  #stop(error: ProxyError): void {
    this.#exchange?.abort();
    this.#respondError(error);
  }

  #respondError(error: ProxyError): void {
    if (this.#isDone) return;
    const { request } = this;
    this.#end();
    request.stream.restoreIdleTimeout(request.listener.idleTimeout);
    // RFC 6455 section 4.4: names the supported version.
    const isVersion = error === failures.webSocketVersion;
    respondError(request, error, isVersion ? { headers: { "Sec-WebSocket-Version": "13" } } : {});
  }

  #end(): void {
    this.#isDone = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.endAttempts();
    this.#exchange = null;
    this.#pieces = [];
    const { request } = this;
    request.stream.signal.removeEventListener("abort", this.#abort);
    request.worker.inFlight.remove(this);
  }
}
