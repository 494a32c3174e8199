// Leads a request through the plugins of its route and responds for those that do not let it go on; knows no plugin.
import { failures, type ProxyError } from "../error.ts";
import { errorResponse } from "../error-page.ts";
import type { InFlightEntry } from "../in-flight.ts";
import type { ClientRequest } from "../request/client-request.ts";
import { report, respondClosed, respondError, respondLocal } from "../request/respond.ts";
import type { PluginAnswer } from "./chain-cursor.ts";
import type { PluginContext } from "./plugin-context.ts";

/** Runs the plugins, and then either responds for one of them or calls `next`. */
export function runPluginChain(
  plugins: PluginContext,
  next: (request: ClientRequest) => void,
): void {
  const outcome = plugins.cursor.run();
  if (outcome instanceof Promise) new PendingPluginCall(plugins, next).wait(outcome);
  else settle(plugins, outcome, next);
}

/** Responds for the plugin that has decided; where none has, the request goes on. */
export function settle(
  { request }: PluginContext,
  outcome: PluginAnswer | undefined,
  next: (request: ClientRequest) => void,
): void {
  if (outcome === undefined) return next(request);
  const { answer, order } = outcome;
  if (answer.kind === "reply") {
    if (answer.status === 0) respondClosed(request);
    else respondLocal(request, answer, { source: "plugin", order });
    return;
  }
  // Not `client`: the connection may go on, what is left of a body is read by the server.
  const { status, token, detail, reason } = answer;
  const error: ProxyError = { source: "gateway", status, token, detail, retry: "never", reason };
  report(request, error);
  const response = errorResponse(request, error);
  for (const [name, value] of Object.entries(answer.headers)) response.headers.set(name, value);
  respondLocal(request, response, { source: "gateway", error, order });
}

/** A plugin mostly waits for another server, whose work was in vain: it counts like that of a target. */
function respondGone(request: ClientRequest): void {
  request.worker.aborted.note(request);
  respondError(request, failures.clientGone);
}

/** A request that waits for a plugin counts as in flight, and outlives the idle timeout of the server. */
class PendingPluginCall implements InFlightEntry {
  previous: InFlightEntry | null = null;
  next: InFlightEntry | null = null;
  isListed = false;
  readonly #plugins: PluginContext;
  readonly #goOn: (request: ClientRequest) => void;
  readonly #startedAt: number;
  #outlivesIdle = false;
  #isOver = false;

  constructor(plugins: PluginContext, next: (request: ClientRequest) => void) {
    const { request } = plugins;
    const { inFlight } = request.worker;
    // Known only as long as the client is there, and asked for when it has gone.
    request.peerAddress();
    this.#plugins = plugins;
    this.#goOn = next;
    this.#startedAt = inFlight.now();
    inFlight.add(this);
  }

  wait(outcome: Promise<PluginAnswer | undefined>): void {
    const plugins = this.#plugins;
    const { request } = plugins;
    // A client whose body cannot be read any further gets its response while the plugin still waits.
    plugins.refuse = (error) => {
      if (this.#end()) respondError(request, error);
    };
    outcome.then(
      (answer) => {
        if (!this.#end()) return;
        if (request.stream.signal.aborted) respondGone(request);
        else settle(plugins, answer, this.#goOn);
      },
      () => undefined,
    );
  }

  tick(now: number): void {
    const { stream, listener } = this.#plugins.request;
    this.#plugins.tick(now);
    if (this.#outlivesIdle || now - this.#startedAt < listener.idleTimeout * 250) return;
    this.#outlivesIdle = true;
    stream.suspendIdleTimeout();
  }

  /** False: it has ended before. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    const { stream, listener, worker } = this.#plugins.request;
    worker.inFlight.remove(this);
    if (this.#outlivesIdle) stream.restoreIdleTimeout(listener.idleTimeout);
    return true;
  }
}
