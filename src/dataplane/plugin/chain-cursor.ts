// How far a request has come in the plugin chain of its route, and the calling of handlers; knows no request path.
import type { PluginResponse, Outcome, Rejection } from "../../pdk/response.ts";
import type { RequestContext } from "../../pdk/context.ts";
import {
  type Chain,
  type ChainStep,
  type PluginRuntime,
  type RequestPhase,
  requestPhases,
} from "./plugin-set.ts";
import type { ResponseDraft } from "./response-draft.ts";

/** A plugin's own response, and the order of that plugin. */
export interface ShortCircuit {
  readonly response: PluginResponse;
  readonly order: number;
}

/** What a plugin decided about a request. */
export type PluginDecision = "pass" | "reject" | "reply" | "error";

/** Observes the outcome of handlers. */
export interface ChainObserver {
  /** A handler failed. */
  failed(requestId: string, runtime: PluginRuntime, error: unknown): void;
  /** For the counters. */
  decided(plugin: string, decision: PluginDecision): void;
}

/** What the cursor sees of the request. */
export interface CursorContext extends RequestContext {
  /** The service that a plugin has chosen; null: the route's. */
  readonly chosenServiceId: string | null;
}

type Step = ShortCircuit | undefined | Promise<ShortCircuit | undefined>;

export class ChainCursor {
  /** The consumer's chain once the consumer is known, and that of a service that a plugin has chosen. */
  chain: Chain;
  /** The chosen service whose plugins run; null: the route's. */
  #serviceId: string | null = null;
  readonly #context: CursorContext;
  readonly #observer: ChainObserver;
  /** Phase and step of the handler that was called last. */
  #phase = 0;
  #step = 0;
  #running: PluginRuntime | null = null;
  /** Plugins up to this index of the chain do not see the response; negative: all do. */
  #innermost = -1;
  /** Plugins that have handled a copy of a request: only these log its end. Null: no copy. */
  #called: Set<PluginRuntime> | null = null;
  /** Results of `when`, which is evaluated once. */
  #verdicts: Map<PluginRuntime, boolean> | null = null;

  constructor(context: CursorContext, chain: Chain, observer: ChainObserver) {
    this.#context = context;
    this.chain = chain;
    this.#observer = observer;
  }

  /** Moves `copy` to the position of this cursor: only plugins after the running handler see the copied request. */
  copyTo(copy: ChainCursor): void {
    copy.#serviceId = this.#serviceId;
    copy.#verdicts = this.#verdicts === null ? null : new Map(this.#verdicts);
    copy.#phase = this.#phase;
    copy.#step = this.#step;
    copy.#called = new Set();
    copy.#innermost = this.#running === null ? 0 : this.chain.all.indexOf(this.#running);
  }

  /** Runs everything before the request goes upstream. Undefined: no plugin responds. */
  run(): Step {
    return this.#callAll("stripIdentity", this.chain.identityStrippers) ?? this.#runFrom(0, 0);
  }

  /** Runs what comes after the handler that was called last. */
  resume(): Step {
    return this.#runFrom(this.#phase, this.#step + 1);
  }

  #callAll(
    handler: "stripIdentity" | "authSkipped",
    runtimes: readonly PluginRuntime[],
  ): ShortCircuit | undefined {
    for (const runtime of runtimes) {
      try {
        runtime.handlers[handler]?.(this.#context);
      } catch (error) {
        const shortCircuit = this.#afterFailure(runtime, error);
        if (shortCircuit !== undefined) return shortCircuit;
      }
    }
    return undefined;
  }

  /** Starts at this phase and step, and resumes by itself after a handler that returns a promise. */
  #runFrom(firstPhase: number, firstStep: number): Step {
    const context = this.#context;
    let step = firstStep;
    for (let at = firstPhase; at < requestPhases.length; at++) {
      const phase = requestPhases[at] ?? "request";
      // From here on the consumer is known.
      if (phase === "access" && step === 0 && context.consumer !== null)
        this.chain = this.chain.forConsumer(context.consumer.id);
      const isSkipped = phase === "auth" && context.authMode === "skip";
      const steps = isSkipped ? NONE : this.chain[phase];
      for (; step < steps.length; step++) {
        const runtime = steps[step];
        if (runtime === undefined || !this.applies(runtime)) continue;
        this.#phase = at;
        this.#step = step;
        this.#running = runtime;
        this.#called?.add(runtime);
        const outcome = this.#call(runtime, phase);
        if (outcome instanceof Promise) return this.#resumeAfter(outcome, { phase: at, step });
        if (outcome !== undefined) return outcome;
        if (this.#hasMoved()) return this.#runAfter({ phase: at, step });
      }
      if (isSkipped || (phase === "auth" && context.isAnonymous)) {
        const skipped = this.chain.auth.filter((runtime) => this.applies(runtime));
        const failed = this.#callAll("authSkipped", skipped);
        if (failed !== undefined) return failed;
      }
      step = 0;
    }
    return undefined;
  }

  #resumeAfter(pending: Promise<ShortCircuit | undefined>, called: ChainStep): Step {
    return pending.then((shortCircuit) => shortCircuit ?? this.#runAfter(called));
  }

  /** Whether a plugin has chosen another service. The chain of a copy does not change with its service. */
  #hasMoved(): boolean {
    return this.#context.chosenServiceId !== this.#serviceId && this.#called === null;
  }

  /** Runs what comes after this step: the plugins of another service if the step has chosen one. */
  #runAfter(called: ChainStep): Step {
    if (!this.#hasMoved()) return this.#runFrom(called.phase, called.step + 1);
    this.#serviceId = this.#context.chosenServiceId;
    const chain = this.chain.inService(this.#serviceId ?? "", called);
    if (chain === this.chain) return this.#runFrom(called.phase, called.step + 1);
    this.chain = chain;
    return this.#callAll("stripIdentity", chain.identityStrippers) ?? this.#runFrom(0, 0);
  }

  #call(runtime: PluginRuntime, phase: RequestPhase): Step {
    try {
      const outcome = runtime.handlers[phase]?.(this.#context);
      if (!(outcome instanceof Promise)) return this.#decided(runtime, outcome);
      return outcome.then(
        (response) => this.#decided(runtime, response),
        (error: unknown) => this.#afterFailure(runtime, error),
      );
    } catch (error) {
      return this.#afterFailure(runtime, error);
    }
  }

  #decided(runtime: PluginRuntime, response: Outcome): ShortCircuit | undefined {
    const { name } = runtime.plan;
    if (response === undefined) {
      this.#observer.decided(name, "pass");
      return undefined;
    }
    this.#observer.decided(name, response.kind === "rejection" ? "reject" : "reply");
    if (response.reason !== "") this.#context.note(response.reason);
    return { response, order: runtime.order };
  }

  #afterFailure(runtime: PluginRuntime, error: unknown): ShortCircuit | undefined {
    this.#fail(runtime, error);
    return runtime.onError === "open" ? undefined : { response: FAILED, order: runtime.order };
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    const { name } = runtime.plan;
    this.#observer.decided(name, "error");
    this.#observer.failed(this.#context.id, runtime, error);
    this.#context.note(`${name}.error`);
  }

  /** Whether the instance's condition matches this request; it is evaluated once. */
  applies(runtime: PluginRuntime): boolean {
    const { when } = runtime;
    if (when === null) return true;
    this.#verdicts ??= new Map();
    const known = this.#verdicts.get(runtime);
    if (known !== undefined) return known;
    const matches = when(this.#context);
    // Conditions on the consumer may match only after authentication.
    if (!runtime.asksForConsumer) this.#verdicts.set(runtime, matches);
    return matches;
  }

  /** Whether plugins outside of `order` have a response handler; default: whether any has. */
  hasResponseHandlers(order = Number.NEGATIVE_INFINITY): boolean {
    // The outermost comes last.
    return (this.chain.response.at(-1)?.order ?? Number.NEGATIVE_INFINITY) > order;
  }

  /** Shows the response to the plugins outside of `order`; default: to all. */
  respond(draft: ResponseDraft, order = Number.NEGATIVE_INFINITY): void {
    const { all, response } = this.chain;
    for (const runtime of response) {
      if (this.#innermost >= 0 && all.indexOf(runtime) <= this.#innermost) return;
      if (runtime.order <= order || !this.applies(runtime)) continue;
      try {
        runtime.handlers.response?.(this.#context, draft);
      } catch (error) {
        // The target has processed the request already: an error response could not undo that.
        this.#fail(runtime, error);
      }
    }
  }

  log(): void {
    for (const runtime of this.chain.log) this.#log(runtime, "log");
  }

  logBatch(): void {
    for (const runtime of this.chain.logBatch) this.#log(runtime, "logBatch");
  }

  #log(runtime: PluginRuntime, handler: "log" | "logBatch"): void {
    try {
      if (this.#called?.has(runtime) === false || !this.applies(runtime)) return;
      runtime.handlers[handler]?.(this.#context);
    } catch (error) {
      this.#fail(runtime, error);
    }
  }
}

const NONE: readonly PluginRuntime[] = [];

const FAILED: Rejection = {
  kind: "rejection",
  status: 500,
  reason: "",
  detail: "a plugin failed",
  headers: {},
  token: "proxy_internal_error",
};
