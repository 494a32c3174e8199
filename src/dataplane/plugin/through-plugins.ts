// Leads a request through the plugins of its route and answers for those that do not let it go on; knows no plugin.
import type { Answer as PluginAnswerBody } from "../../pdk/answer.ts";
import type { Refetched, RefetchOptions } from "../../pdk/context.ts";
import { AbortedRequests } from "../aborted-requests.ts";
import type { RetryDecision } from "../error.ts";
import { errorAnswer } from "../error-page.ts";
import { failures, type ProxyError } from "../error.ts";
import { hangUp } from "../hang-up.ts";
import type { Watched } from "../in-flight.ts";
import { ListNode } from "../linked-list.ts";
import { ended, fail, type Scene, seenByPlugins } from "../own-answer.ts";
import type { RequestContext } from "../request-context.ts";
import { resultOf } from "../request-result.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { WorkerScope } from "../worker-scope.ts";
import type { Chain } from "./chain.ts";
import { HeldBody } from "./held-body.ts";
import { readRefetched } from "./refetched.ts";
import { type PluginAnswer, Visit, type VisitScene } from "./visit.ts";

type Answer = Response | undefined | Promise<Response | undefined>;

interface Steps {
  /** The answer that the route gives whatever plugins say; null: none. */
  readonly before: () => Answer | null;
  /** What becomes of the request, or of a copy of it, when no plugin has answered it. */
  readonly goOn: (context: RequestContext, scope: WorkerScope) => Answer;
}

type PluginScene = Scene & { readonly route: RouteRuntime | null; readonly chain: Chain };

/** Runs the plugins, and then either answers for one of them or lets the request go on. */
export function throughPlugins(context: RequestContext, scene: PluginScene, steps: Steps): Answer {
  let refuse: ((answer: Answer) => void) | null = null;
  const body = new HeldBody({
    context,
    readTimeout: scene.generation.bodyReadTimeout,
    refuse: (error) => refuse?.(fail(context, error, scene)),
  });
  const visit = visitOf(context, scene, {
    body,
    refetch: (from, options) => refetch(context, { from, scene, steps }, options),
  });
  context.visit = visit;
  const before = steps.before();
  if (before !== null) return before;
  const outcome = visit.run();
  if (!(outcome instanceof Promise)) return afterwards(outcome, context, { scene, steps });
  // Whoever cannot be read any further is answered while the plugin still waits.
  const { promise, resolve, reject } = Promise.withResolvers<Response | undefined>();
  refuse = (answer) => resolve(answer as Response);
  const stay = new Stay(context, scene);
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

/** Makes a copy of the request that belongs to no client and leads it on from where the visit is. */
async function refetch(
  context: RequestContext,
  { from, scene, steps }: RefetchScene,
  options: RefetchOptions,
): Promise<Refetched> {
  const copy = context.detached(options.method);
  const body = new HeldBody({ context: copy, readTimeout: 0, refuse() {} });
  const visit = from.copyFor(copy, body);
  copy.visit = visit;
  copy.edits = context.edits?.copyFor(copy) ?? null;
  options.prepare?.(visit.upstream);
  const scope: WorkerScope = {
    ...scene.scope,
    // No client has asked, and none goes away: only what was called for the copy hears of its end.
    ended: (own, status) => visit.log(resultOf(own.record, status)),
    aborted: new AbortedRequests(() => {}),
  };
  const outcome = await visit.runOn();
  const response = await afterwards(outcome, copy, { scene: { ...scene, scope }, steps });
  return await readRefetched(response, visit, options.maxBytes);
}

interface RefetchScene {
  readonly from: Visit;
  readonly scene: PluginScene;
  readonly steps: Steps;
}

function goneClient(context: RequestContext, scene: Scene): Answer {
  return fail(context, failures.clientGone, scene);
}

function afterwards(
  outcome: PluginAnswer | undefined,
  context: RequestContext,
  { scene, steps }: { readonly scene: PluginScene; readonly steps: Steps },
): Answer {
  if (outcome === undefined) return steps.goOn(context, scene.scope);
  const { answer, order } = outcome;
  if (answer.kind === "reply") {
    if (answer.status === 0) return ended(hangUp(), context, scene);
    const own = { status: answer.status, headers: answer.headers, body: answer.body };
    return ended(seenByPlugins(context, own, { source: "plugin", order }), context, scene);
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

function visitOf(
  context: RequestContext,
  { generation, scope, route, chain }: PluginScene,
  own: Pick<VisitScene, "body" | "refetch">,
): Visit {
  const service = generation.services.get(route?.route.service_id ?? "");
  return new Visit(context, {
    chain,
    route: route === null ? null : { id: route.id, name: route.route.name },
    service: service === undefined ? null : { id: service.id, name: service.service.name },
    consumers: generation.consumers,
    hasService: (id) => generation.services.get(id)?.isHttp === true,
    country: scope.geo.country,
    asn: scope.geo.asn,
    ...own,
    failed: (runtime, error) => scope.pluginFailed(context, runtime.plan, error),
    decided: scope.decided,
  });
}

/** A request that waits for a plugin counts as in flight, and outlives the idle time-out of the server. */
class Stay implements Watched {
  readonly #place = new ListNode<Watched>(this);
  readonly #context: RequestContext;
  readonly #scene: Scene;
  readonly #startedAt: number;
  #outlivesIdle = false;

  constructor(context: RequestContext, scene: Scene) {
    this.#context = context;
    this.#scene = scene;
    scene.scope.inFlight.add(this.#place);
    this.#startedAt = scene.scope.inFlight.now();
  }

  tick(now: number): void {
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
