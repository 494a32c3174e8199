// One request on its way through plugins: what they see of it, and the running of their handlers; knows no upstream connection.
import type { Answer, Outcome, Rejection } from "../../pdk/answer.ts";
import type {
  AuthMode,
  Consumers,
  NamedObject,
  Refetched,
  RefetchOptions,
  RequestContext as PluginRequest,
  ResponseDraft,
} from "../../pdk/context.ts";
import type { RequestContext } from "../request-context.ts";
import type { AnswerDraft } from "./answer-draft.ts";
import type { HeldBody } from "./held-body.ts";
import { type Chain, requestPhases, type Step } from "./chain.ts";
import { Course } from "./course.ts";
import { NOBODY } from "./identity.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import { IdentifiedRequest } from "./identified-request.ts";
import { RequestMemory } from "./request-memory.ts";
import { UpstreamEdits } from "./upstream-edits.ts";
import type { VisitScene } from "./visit-scene.ts";

/** An answer and the place in the order of the plugin that gave it. */
export interface PluginAnswer {
  readonly answer: Answer;
  readonly order: number;
}

const NONE: readonly string[] = [];

export class Visit extends IdentifiedRequest implements PluginRequest {
  #scene: VisitScene;
  #chain: Chain;
  /** The service that another plugin has chosen, whose plugins run from then on; null: the route's own. */
  #serviceId: string | null = null;
  #memory: RequestMemory | null = null;
  /** Verdicts of `when`, so that it is asked once. */
  #verdicts: Map<PluginRuntime, boolean> | null = null;
  #reasons: string[] | null = null;
  /** Null: it has met no plugin yet. */
  #course: Course | null = null;
  /** Who made the answer that plugins saw last. */
  seenSource: ResponseDraft["source"] = "gateway";
  authMode: AuthMode = "default";

  constructor(context: RequestContext, scene: VisitScene) {
    super(context);
    this.#scene = scene;
    this.#chain = scene.chain;
  }

  /** Another request in the place of this one, which nobody holds on to: nothing is left of it. */
  reuseFor(context: RequestContext, scene: VisitScene): void {
    this.reuseFactsFor(context);
    this.#scene = scene;
    this.#chain = scene.chain;
    this.#serviceId = null;
    this.identity = NOBODY;
    this.#memory = null;
    this.#verdicts = null;
    this.#reasons = null;
    this.#course = null;
    this.seenSource = "gateway";
    this.authMode = "default";
  }

  // What plugins see.

  country(): string | null {
    return this.#scene.country(this.clientAddress());
  }

  asn(): number | null {
    return this.#scene.asn(this.clientAddress());
  }

  get route(): NamedObject | null {
    return this.#scene.route;
  }

  get service(): NamedObject | null {
    return this.#scene.service;
  }

  /** Whether a plugin gives requests their ids, in the place of the gateway. */
  get namesRequests(): boolean {
    return this.#chain.namesRequests;
  }

  get consumers(): Consumers {
    return this.#scene.consumers;
  }

  get upstream(): UpstreamEdits {
    const context = this.context;
    context.edits ??= new UpstreamEdits(context, this.#scene);
    return context.edits;
  }

  refetch(options: RefetchOptions): Promise<Refetched> {
    return this.#scene.refetch(this, options);
  }

  get hasBody(): boolean {
    return this.bodyLength !== 0;
  }

  get bodyLength(): number {
    return this.#scene.bodyLengthOf(this.context);
  }

  readBody(maxBytes: number): Promise<Uint8Array | null> {
    return this.#scene.bodyOf(this.context).read(maxBytes);
  }

  limitBody(maxBytes: number, reason: string): void {
    this.#scene.bodyOf(this.context).limit(maxBytes, reason);
  }

  passBody(through: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>): boolean {
    return this.#scene.bodyOf(this.context).pass(through);
  }

  serviceNamed(id: string): NamedObject | null {
    return this.#scene.serviceNamed(id);
  }

  get memory(): RequestMemory {
    this.#memory ??= new RequestMemory();
    return this.#memory;
  }

  note(reason: string): void {
    this.#reasons ??= [];
    this.#reasons.push(reason);
  }

  get reasons(): readonly string[] {
    return this.#reasons ?? NONE;
  }

  // The running of handlers.

  /** Everything before the request goes upstream. Undefined: it goes. */
  run(): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    return this.#takeAway("protect", this.#chain.protecting) ?? this.#runFrom(0, 0);
  }

  #takeAway(what: "protect" | "waived", from: readonly PluginRuntime[]): PluginAnswer | undefined {
    for (const runtime of from) {
      try {
        runtime.handlers[what]?.(this);
      } catch (error) {
        const answer = this.#afterFailure(runtime, error);
        if (answer !== undefined) return answer;
      }
    }
    return undefined;
  }

  /** The same for a copy of the request, as far as only what comes after the handler that was called last is concerned. */
  copyFor(context: RequestContext, body: HeldBody): Visit {
    const copy = new Visit(context, this.#scene.copyFor(context, body));
    copy.#chain = this.#chain;
    copy.#serviceId = this.#serviceId;
    copy.identity = this.identity;
    copy.#memory = this.#memory?.copy() ?? null;
    copy.#verdicts = this.#verdicts === null ? null : new Map(this.#verdicts);
    copy.authMode = this.authMode;
    const { phase, step, running } = this.#course ?? new Course();
    const course = new Course();
    course.phase = phase;
    course.step = step;
    course.called = new Set();
    course.innermost = running === null ? 0 : this.#chain.all.indexOf(running);
    copy.#course = course;
    return copy;
  }

  /** What comes after the handler that was called last. */
  runOn(): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    const { phase, step } = this.#course ?? new Course();
    return this.#runFrom(phase, step + 1);
  }

  /** From the phase with that number and the step in it; goes on by itself as long as nobody has to be waited for. */
  #runFrom(
    firstPhase: number,
    firstStep: number,
  ): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    this.#course ??= new Course();
    const course = this.#course;
    let step = firstStep;
    for (let at = firstPhase; at < requestPhases.length; at++) {
      const phase = requestPhases[at] ?? "request";
      // From here on it is known who the client is.
      if (phase === "access" && step === 0 && this.consumer !== null)
        this.#chain = this.#chain.forConsumer(this.consumer.id);
      const isSkipped = phase === "auth" && this.authMode === "skip";
      const steps = isSkipped ? [] : this.#chain[phase];
      for (; step < steps.length; step++) {
        const runtime = steps[step];
        if (runtime === undefined || !this.applies(runtime)) continue;
        course.phase = at;
        course.step = step;
        course.running = runtime;
        course.called?.add(runtime);
        const outcome = this.#call(runtime, phase);
        if (outcome instanceof Promise) {
          const called = { phase: at, step };
          return outcome.then((answer) => answer ?? this.#runBehind(called));
        }
        if (outcome !== undefined) return outcome;
        if (this.#hasMoved()) return this.#runBehind({ phase: at, step });
      }
      if (isSkipped || (phase === "auth" && this.isAnonymous)) {
        const waiving = this.#chain.auth.filter((runtime) => this.applies(runtime));
        const failed = this.#takeAway("waived", waiving);
        if (failed !== undefined) return failed;
      }
      step = 0;
    }
    return undefined;
  }

  /** Whether a plugin has chosen another service. A copy is what goes upstream of its request, wherever it goes. */
  #hasMoved(): boolean {
    const { edits } = this.context;
    return edits !== null && edits.serviceId !== this.#serviceId && !this.#course?.called;
  }

  /** What comes after this step: the plugins of the service that was chosen in it, if there was one. */
  #runBehind(called: Step): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    if (!this.#hasMoved()) return this.#runFrom(called.phase, called.step + 1);
    this.#serviceId = this.context.edits?.serviceId ?? null;
    const chain = this.#chain.inService(this.#serviceId ?? "", called);
    if (chain === this.#chain) return this.#runFrom(called.phase, called.step + 1);
    this.#chain = chain;
    return this.#takeAway("protect", chain.protecting) ?? this.#runFrom(0, 0);
  }

  #call(
    runtime: PluginRuntime,
    phase: (typeof requestPhases)[number],
  ): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    try {
      const outcome = runtime.handlers[phase]?.(this);
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
      this.#scene.decided(name, "pass");
      return undefined;
    }
    this.#scene.decided(name, answer.kind === "rejection" ? "reject" : "reply");
    if (answer.reason !== "") this.note(answer.reason);
    return { answer, order: runtime.order };
  }

  #afterFailure(runtime: PluginRuntime, error: unknown): PluginAnswer | undefined {
    this.#fail(runtime, error);
    if (runtime.onError === "open") return undefined;
    const answer: Rejection = {
      kind: "rejection",
      status: 500,
      reason: "",
      detail: "a plugin failed",
      headers: {},
      token: "proxy_internal_error",
    };
    return { answer, order: runtime.order };
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    const { name } = runtime.plan;
    this.#scene.decided(name, "error");
    this.#scene.failed(this.context, runtime, error);
    this.note(`${name}.error`);
  }

  /** Whether the instance's condition holds for this request; it is asked once. */
  applies(runtime: PluginRuntime): boolean {
    const { when } = runtime;
    if (when === null) return true;
    this.#verdicts ??= new Map();
    const known = this.#verdicts.get(runtime);
    if (known !== undefined) return known;
    const verdict = when(this);
    // Before authentication nobody knows who the client is, and afterwards the verdict may be another.
    if (!runtime.asksForConsumer) this.#verdicts.set(runtime, verdict);
    return verdict;
  }

  /** Whether any of them wants to see the answer of a target: what nobody sees is not made ready for it. */
  seesAnswers(): boolean {
    this.seenSource = "upstream";
    return this.#chain.response.length > 0;
  }

  /** Whether there are plugins outside of `order` that want to see an answer. */
  hasViewers(order: number): boolean {
    // The outermost comes last.
    return (this.#chain.response.at(-1)?.order ?? Number.NEGATIVE_INFINITY) > order;
  }

  /** Shows the answer to the plugins outside of `order`; default: to all. */
  respond(draft: AnswerDraft, order = Number.NEGATIVE_INFINITY): void {
    this.seenSource = draft.source;
    const innermost = this.#course?.innermost ?? Number.POSITIVE_INFINITY;
    const isInner = innermost < Number.POSITIVE_INFINITY;
    for (const runtime of this.#chain.response) {
      if (isInner && this.#chain.all.indexOf(runtime) <= innermost) return;
      if (runtime.order <= order || !this.applies(runtime)) continue;
      try {
        runtime.handlers.response?.(this, draft);
      } catch (error) {
        // The target has answered: to refuse now would not take back what was done.
        this.#fail(runtime, error);
      }
    }
  }

  /** Whether anybody wants to hear of its end: what nobody hears is not put into words. */
  get isHeard(): boolean {
    return this.#chain.log.length > 0;
  }

  /** Whether anybody wants to hear of its end that can wait. */
  get isHeardLater(): boolean {
    return this.#chain.logLater.length > 0;
  }

  /** The request has ended with this status, now as `performance.now()` tells it. */
  log(status: number, now: number): void {
    if (this.hasEnded) return;
    this.end(status, now, now);
    for (const runtime of this.#chain.log) this.#tell(runtime, "log");
  }

  /** The same for those that can wait, at the moment `now`. */
  logLater(status: number, endedAt: number, now: number): void {
    if (!this.hasEnded) this.end(status, endedAt, now);
    for (const runtime of this.#chain.logLater) this.#tell(runtime, "logLater");
  }

  /** The same for all, at once. */
  logAll(status: number, now: number): void {
    if (this.hasEnded) return;
    this.log(status, now);
    this.logLater(status, now, now);
  }

  #tell(runtime: PluginRuntime, handler: "log" | "logLater"): void {
    try {
      if (this.#course?.called?.has(runtime) === false || !this.applies(runtime)) return;
      runtime.handlers[handler]?.(this);
    } catch (error) {
      this.#fail(runtime, error);
    }
  }
}
