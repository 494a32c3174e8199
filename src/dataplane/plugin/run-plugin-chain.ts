// Runs the plugins of a request's route, and sends the response of a plugin that ends the chain; knows no plugin.
import { failures } from "../error.ts";
import { errorResponse } from "../error-page.ts";
import type { InFlightEntry } from "../in-flight.ts";
import type { ClientRequest } from "../request/client-request.ts";
import { report, respondClosed, respondError, respondLocal } from "../request/respond.ts";
import type { ShortCircuit } from "./chain-cursor.ts";
import { closeSource } from "./response-draft.ts";
import type { PluginContext } from "./plugin-context.ts";

/** Runs the plugins, then sends the response of one of them or calls `next`. */
export function runPluginChain(
  plugins: PluginContext,
  next: (request: ClientRequest) => void,
): void {
  const outcome = plugins.cursor.run();
  if (outcome instanceof Promise) new PendingPluginCall(plugins, next).wait(outcome);
  else settle(plugins, outcome, next);
}

/** Sends the response of a plugin; without one it calls `next`. */
export function settle(
  { request }: PluginContext,
  outcome: ShortCircuit | undefined,
  next: (request: ClientRequest) => void,
): void {
  if (outcome === undefined) return next(request);
  const { response: given, order } = outcome;
  if (given.kind === "reply") {
    if (given.status === 0) {
      closeSource(given.body);
      respondClosed(request);
    } else respondLocal(request, given, { source: "plugin", order });
    return;
  }
  const error = failures.rejected(given);
  report(request, error);
  const response = errorResponse(request, error);
  for (const [name, value] of Object.entries(given.headers)) response.fields.set(name, value);
  respondLocal(request, response, { source: "gateway", error, order });
}

/** A plugin mostly waits for another server: an abort wastes that server's work as it would a target's, and counts alike. */
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
  readonly #proceed: (request: ClientRequest) => void;
  readonly #startedAt: number;
  #outlivesIdle = false;
  #isOver = false;

  constructor(plugins: PluginContext, next: (request: ClientRequest) => void) {
    const { request } = plugins;
    const { inFlight } = request.worker;
    // Read now: the address is unknown once the client has disconnected.
    request.peerAddress();
    this.#plugins = plugins;
    this.#proceed = next;
    this.#startedAt = inFlight.now();
    inFlight.add(this);
  }

  wait(outcome: Promise<ShortCircuit | undefined>): void {
    const plugins = this.#plugins;
    const { request } = plugins;
    // The gateway refuses a body while the plugin still waits for it.
    plugins.refuse = (error) => {
      if (this.#end()) respondError(request, error);
    };
    outcome.then(
      (shortCircuit) => {
        const isOver = !this.#end();
        if (!isOver && !request.stream.signal.aborted) {
          settle(plugins, shortCircuit, this.#proceed);
          return;
        }
        if (shortCircuit?.response.kind === "reply") closeSource(shortCircuit.response.body);
        if (!isOver) respondGone(request);
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

  /** False: it has ended already. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    const { stream, listener, worker } = this.#plugins.request;
    worker.inFlight.remove(this);
    if (this.#outlivesIdle) stream.restoreIdleTimeout(listener.idleTimeout);
    return true;
  }
}
