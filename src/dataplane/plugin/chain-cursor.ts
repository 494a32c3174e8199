// How far a request has come in the plugin chain of its route, and the calling of handlers; knows no request path.
import type { Answer, Outcome, Rejection } from "../../pdk/answer.ts";
import type { RequestContext } from "../../pdk/context.ts";
import {
  type Chain,
  type ChainStep,
  type PluginRuntime,
  type RequestPhase,
  requestPhases,
} from "./plugin-set.ts";
import type { ResponseDraft } from "./response-draft.ts";

/** A response of a plugin, and the order of the plugin that gave it. */
export interface PluginAnswer {
  readonly answer: Answer;
  readonly order: number;
}

/** What a plugin decided about a request. */
export type PluginDecision = "pass" | "reject" | "reply" | "error";

/** What hears of the outcome of handlers. */
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

type Step = PluginAnswer | undefined | Promise<PluginAnswer | undefined>;

export class ChainCursor {
  /** That of the consumer, once it is known, and of the service that a plugin has chosen. */
  chain: Chain;
  /** The chosen service whose plugins run; null: the route's. */
  #serviceId: string | null = null;
  readonly #context: CursorContext;
  readonly #observer: ChainObserver;
  /** Where the handler that was called last stands. */
  #phase = 0;
  #step = 0;
  #running: PluginRuntime | null = null;
  /** Plugins up to this place in the chain do not look at the response; negative: all may. */
  #innermost = -1;
  /** Those that a copy was led through: no others log its end. Null: no copy. */
  #called: Set<PluginRuntime> | null = null;
  /** Verdicts of `when`, so that it is asked once. */
  #verdicts: Map<PluginRuntime, boolean> | null = null;

  constructor(context: CursorContext, chain: Chain, observer: ChainObserver) {
    this.#context = context;
    this.chain = chain;
    this.#observer = observer;
  }

  /** Makes `copy` stand where this one does, for a request that only what comes after the running handler sees. */
  copyTo(copy: ChainCursor): void {
    copy.#serviceId = this.#serviceId;
    copy.#verdicts = this.#verdicts === null ? null : new Map(this.#verdicts);
    copy.#phase = this.#phase;
    copy.#step = this.#step;
    copy.#called = new Set();
    copy.#innermost = this.#running === null ? 0 : this.chain.all.indexOf(this.#running);
  }

  /** Runs everything before the request goes upstream. Undefined: it goes. */
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
  ): PluginAnswer | undefined {
    for (const runtime of runtimes) {
      try {
        runtime.handlers[handler]?.(this.#context);
      } catch (error) {
        const answer = this.#afterFailure(runtime, error);
        if (answer !== undefined) return answer;
      }
    }
    return undefined;
  }

  /** From the phase with that number and the step in it; goes on by itself as long as nothing has to be waited for. */
  #runFrom(firstPhase: number, firstStep: number): Step {
    const context = this.#context;
    let step = firstStep;
    for (let at = firstPhase; at < requestPhases.length; at++) {
      const phase = requestPhases[at] ?? "request";
      // From here on it is known who the client is.
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
        if (this.#hasMoved()) return this.#runBehind({ phase: at, step });
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

  #resumeAfter(pending: Promise<PluginAnswer | undefined>, called: ChainStep): Step {
    return pending.then((answer) => answer ?? this.#runBehind(called));
  }

  /** Whether a plugin has chosen another service. A copy is what goes upstream of its request, wherever it goes. */
  #hasMoved(): boolean {
    return this.#context.chosenServiceId !== this.#serviceId && this.#called === null;
  }

  /** What comes after this step: the plugins of the service that was chosen in it, if one was. */
  #runBehind(called: ChainStep): Step {
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
        (answer) => this.#decided(runtime, answer),
        (error: unknown) => this.#afterFailure(runtime, error),
      );
    } catch (error) {
      return this.#afterFailure(runtime, error);
    }
  }

  #decided(runtime: PluginRuntime, answer: Outcome): PluginAnswer | undefined {
    const { name } = runtime.plan;
    if (answer === undefined) {
      this.#observer.decided(name, "pass");
      return undefined;
    }
    this.#observer.decided(name, answer.kind === "rejection" ? "reject" : "reply");
    if (answer.reason !== "") this.#context.note(answer.reason);
    return { answer, order: runtime.order };
  }

  #afterFailure(runtime: PluginRuntime, error: unknown): PluginAnswer | undefined {
    this.#fail(runtime, error);
    return runtime.onError === "open" ? undefined : { answer: FAILED, order: runtime.order };
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    const { name } = runtime.plan;
    this.#observer.decided(name, "error");
    this.#observer.failed(this.#context.id, runtime, error);
    this.#context.note(`${name}.error`);
  }

  /** Whether the instance's condition holds for this request; it is asked once. */
  applies(runtime: PluginRuntime): boolean {
    const { when } = runtime;
    if (when === null) return true;
    this.#verdicts ??= new Map();
    const known = this.#verdicts.get(runtime);
    if (known !== undefined) return known;
    const verdict = when(this.#context);
    // Before authentication the client is not known, and afterwards the verdict may be another.
    if (!runtime.asksForConsumer) this.#verdicts.set(runtime, verdict);
    return verdict;
  }

  /** Whether plugins outside of `order` look at responses; default: whether any does. */
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
        // The target has responded: to refuse now would not take back what was done.
        this.#fail(runtime, error);
      }
    }
  }

  log(): void {
    for (const runtime of this.chain.log) this.#log(runtime, "log");
  }

  logBatch(): void {
    for (const runtime of this.chain.logBatch) this.#log(runtime, "logLater");
  }

  #log(runtime: PluginRuntime, handler: "log" | "logLater"): void {
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
