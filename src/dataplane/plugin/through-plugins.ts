// Leads a request through the plugins of its route and answers for those that do not let it go on; knows no plugin.
import type { Answer as PluginAnswerBody } from "../../pdk/answer.ts";
import type { NamedObject, Refetched, RefetchOptions } from "../../pdk/context.ts";
import { AbortedRequests } from "../aborted-requests.ts";
import { ENDLESS } from "../client-body.ts";
import type { RetryDecision } from "../error.ts";
import { errorAnswer } from "../error-page.ts";
import { failures, type ProxyError } from "../error.ts";
import { hangUp } from "../hang-up.ts";
import type { Watched } from "../in-flight.ts";
import { ListNode } from "../linked-list.ts";
import { ended, fail, type Scene, seenByPlugins } from "../own-answer.ts";
import { bodyPatience } from "../plan.ts";
import type { RequestContext } from "../request-context.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { WorkerScope } from "../worker-scope.ts";
import type { Chain } from "./chain.ts";
import { declaredLength, HeldBody } from "./held-body.ts";
import { readRefetched } from "./refetched.ts";
import { ServedScene } from "./served-scene.ts";
import { type PluginAnswer, Visit } from "./visit.ts";
import type { VisitScene } from "./visit-scene.ts";

type Answer = Response | undefined | Promise<Response | undefined>;

export interface Steps {
  /** The answer that the route gives whatever plugins say; null: none. */
  readonly before: (context: RequestContext, scene: PluginScene) => Answer | null;
  /** What becomes of the request, or of a copy of it, when no plugin has answered it. */
  readonly goOn: (context: RequestContext, scene: PluginScene) => Answer;
}

type PluginScene = Scene & { readonly route: RouteRuntime | null; readonly chain: Chain };

/** Runs the plugins, and then either answers for one of them or lets the request go on. */
export function throughPlugins(context: RequestContext, scene: PluginScene, steps: Steps): Answer {
  const passage = new Passage(context, scene, steps);
  const visit = new Visit(context, passage);
  context.visit = visit;
  const before = steps.before(context, scene);
  if (before !== null) return before;
  const outcome = visit.run();
  if (!(outcome instanceof Promise)) return afterwards(outcome, context, { scene, steps });
  // Known only as long as the client is there, and asked for when it has gone.
  context.peerAddress();
  // Whoever cannot be read any further is answered while the plugin still waits.
  const { promise, resolve, reject } = Promise.withResolvers<Response | undefined>();
  passage.refuse = (error) => resolve(fail(context, error, scene) as Response);
  const stay = new Stay(passage, context, scene);
  outcome
    .then((answer) => {
      stay.end();
      if (context.request.signal.aborted) return goneClient(context, scene);
      return afterwards(answer, context, { scene, steps });
    })
    .then(resolve, reject)
    .catch(() => undefined);
  void promise.finally(() => stay.end());
  return promise;
}

/** What a visit needs beside the request; what few plugins ask for is made when one does. */
class Passage extends ServedScene<PluginScene> implements VisitScene {
  readonly #context: RequestContext;
  readonly #steps: Steps;
  #body: HeldBody | null = null;
  /** Answers the client although a plugin still waits for the body. */
  refuse: ((error: ProxyError) => void) | null = null;

  constructor(context: RequestContext, scene: PluginScene, steps: Steps) {
    super(scene);
    this.#context = context;
    this.#steps = steps;
  }

  get chain(): Chain {
    return this.around.chain;
  }

  get route(): NamedObject | null {
    return this.ownRoute;
  }

  get service(): NamedObject | null {
    return this.ownService;
  }

  bodyLengthOf(context: RequestContext): number {
    return this.#body === null ? declaredLength(context) : this.#body.length;
  }

  bodyOf(context: RequestContext): HeldBody {
    this.#body ??= new HeldBody({
      context,
      patience: bodyPatience(this.around.generation.bodyTimes, context, this.around.route),
      refuse: (error) => this.refuse?.(error),
    });
    return this.#body;
  }

  /** Looks whether the client is still waited for. */
  tick(now: number): void {
    this.#body?.tick(now);
  }

  refetch(from: Visit, options: RefetchOptions): Promise<Refetched> {
    return refetch(this.#context, { from, scene: this.around, steps: this.#steps }, options);
  }

  copyFor(context: RequestContext, body: HeldBody): VisitScene {
    const copy = new Passage(context, this.around, this.#steps);
    copy.#body = body;
    return copy;
  }
}

/** Makes a copy of the request that belongs to no client and leads it on from where the visit is. */
async function refetch(
  context: RequestContext,
  { from, scene, steps }: RefetchScene,
  options: RefetchOptions,
): Promise<Refetched> {
  const { method, timeoutMs } = options;
  const signal = timeoutMs === undefined ? null : AbortSignal.timeout(timeoutMs);
  const copy = context.detached(method, signal);
  const body = new HeldBody({ context: copy, patience: ENDLESS, refuse() {} });
  const visit = from.copyFor(copy, body);
  copy.visit = visit;
  copy.edits = context.edits?.copyFor(copy) ?? null;
  options.prepare?.(visit.upstream);
  const scope: WorkerScope = {
    ...scene.scope,
    // No client has asked, and none goes away: only what was called for the copy hears of its end.
    ended: (_own, status) => visit.logAll(status, performance.now()),
    aborted: UNCOUNTED,
  };
  const outcome = await visit.runOn();
  const response = await afterwards(outcome, copy, { scene: { ...scene, scope }, steps });
  return await readRefetched(response, visit, options.maxBytes);
}

/** For requests that no client can abort. */
const UNCOUNTED = new AbortedRequests({ aborted() {}, refused() {}, began() {} });

interface RefetchScene {
  readonly from: Visit;
  readonly scene: PluginScene;
  readonly steps: Steps;
}

/** A plugin mostly waits for another server, whose work was in vain: it counts like that of a target. */
function goneClient(context: RequestContext, scene: Scene): Answer {
  scene.scope.aborted.note(context);
  return fail(context, failures.clientGone, scene);
}

function afterwards(
  outcome: PluginAnswer | undefined,
  context: RequestContext,
  { scene, steps }: { readonly scene: PluginScene; readonly steps: Steps },
): Answer {
  if (outcome === undefined) return steps.goOn(context, scene);
  const { answer, order } = outcome;
  if (answer.kind === "reply") {
    if (answer.status === 0) return ended(hangUp(), context, scene);
    return ended(seenByPlugins(context, answer, { source: "plugin", order }), context, scene);
  }
  const error = errorOf(answer);
  scene.scope.report(context, error);
  const page = errorAnswer(context, error);
  for (const [name, value] of Object.entries(answer.headers)) page.headers.set(name, value);
  const seen = seenByPlugins(context, page, { source: "gateway", error, order });
  return ended(seen, context, scene);
}

function errorOf(answer: Extract<PluginAnswerBody, { readonly kind: "rejection" }>): ProxyError {
  const retry: RetryDecision = "never";
  const { status, token, detail, reason } = answer;
  // Not `client`: the connection may go on, what is left of a body is read by the server.
  return { source: "gateway", status, token, detail, retry, reason };
}

/** A request that waits for a plugin counts as in flight, and outlives the idle time-out of the server. */
class Stay implements Watched {
  readonly #place = new ListNode<Watched>(this);
  readonly #passage: Passage;
  readonly #context: RequestContext;
  readonly #scene: Scene;
  readonly #startedAt: number;
  #outlivesIdle = false;

  constructor(passage: Passage, context: RequestContext, scene: Scene) {
    this.#passage = passage;
    this.#context = context;
    this.#scene = scene;
    scene.scope.inFlight.add(this.#place);
    this.#startedAt = scene.scope.inFlight.now();
  }

  tick(now: number): void {
    this.#passage.tick(now);
    const { request, server, listener } = this.#context;
    if (this.#outlivesIdle || now - this.#startedAt < listener.idleTimeout * 250) return;
    this.#outlivesIdle = true;
    server.timeout(request, 0);
  }

  end(): void {
    const { request, server, listener } = this.#context;
    this.#scene.scope.inFlight.remove(this.#place);
    if (this.#outlivesIdle) server.timeout(request, listener.idleTimeout);
    this.#outlivesIdle = false;
  }
}
