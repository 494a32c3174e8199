// The life of one HTTP request: read it, find its route, send it on; knows no socket and no configuration store.
import { connectionOptions } from "../http/hop-by-hop.ts";
import { errorResponse } from "./error-page.ts";
import { failures, type ProxyError } from "./error.ts";
import type { Generation } from "./generation.ts";
import { hangUp } from "./hang-up.ts";
import { fail, own, type Scene } from "./own-answer.ts";
import { heardScene } from "./plugin/heard-scene.ts";
import { type Steps, throughPlugins } from "./plugin/through-plugins.ts";
import type { Plan } from "./plan.ts";
import { ProxiedRequest } from "./proxied-request.ts";
import {
  defaultSiteAnswer,
  maintenanceAnswer,
  redirectToHttps,
  sendsToHttps,
} from "./local-answer.ts";
import { readRequest, RequestContext, type RequestSource } from "./request-context.ts";
import { chainOf, type RouteRuntime, upstreamTarget } from "./route-runtime.ts";
import { forwardFields } from "./upstream/request-writer.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** A connection that now belongs to a WebSocket has no Response. */
export type Answer = Response | undefined | Promise<Response | undefined>;

/** Carries a WebSocket handshake on; the answer is the target's refusal, or nothing once the client is upgraded. */
export type WebSocketProxy = (plan: Plan) => Promise<Response | undefined>;

/** Serves one request with the given version of the configuration, to its end. */
export function handle(
  source: RequestSource,
  scene: { generation: Generation; scope: WorkerScope },
): Answer {
  const { generation, scope } = scene;
  const { request, listener, connection } = source;
  if (listener.clientAuthority !== null && connection?.clientAuthority !== listener.clientAuthority)
    // Made before the listener asked for what it asks for now: nobody has looked at this client.
    return hangUp();
  const context = readRequest(source);
  if (!(context instanceof RequestContext)) return refuse(request, context, scope);
  if (scope.challenges.hasTokens) {
    // Before everything that somebody has set up: none of it may keep a certificate from being renewed.
    const shown = scope.challenges.answer(context.method, context.path);
    if (shown !== null) return own(shown, context, scene);
  }
  if (scope.overload.isShedding) return fail(context, scope.overload.shed(), scene);
  if (listener.clientAuthority !== null && isMisdirected(context, generation))
    return fail(context, failures.misdirected, scene);
  if (scope.aborted.refusesAny && scope.aborted.refuses(context.clientAddress()))
    return fail(context, failures.tooManyAborted, scene);
  const entry = generation.routes.router.match(context);
  const route = entry === null ? null : generation.routes.of(entry);
  context.record.route = route;
  const { plugins } = generation;
  if (!plugins.isEmpty) {
    const chain = route === null ? plugins.elsewhere : chainOf(route, plugins);
    if (chain !== null) {
      if (!chain.isHeardOnly)
        return throughPlugins(context, { generation, scope, route, chain }, aroundPlugins);
      context.heardIn = heardScene(chain, { generation, scope, route });
    }
  }
  if (route === null) return answerNoRoute(context, scene);
  return ownAnswerOf(context, route, scene) ?? proxy(context, route, scene);
}

/** What comes before plugins and after them; made once, not for each request. */
const aroundPlugins: Steps = {
  // What the route answers itself does not depend on who asks.
  before: (context, scene) =>
    scene.route === null ? null : ownAnswerOf(context, scene.route, scene),
  goOn: (context, scene) =>
    scene.route === null ? answerNoRoute(context, scene) : proxy(context, scene.route, scene),
};

function answerNoRoute(context: RequestContext, scene: Scene): Answer {
  const site = defaultSiteAnswer(context, scene.generation.settings.default_site);
  return site === null ? fail(context, failures.noRoute, scene) : own(site, context, scene);
}

/** The answer that the route gives by itself: a redirect to HTTPS, or that it is under maintenance; null: none. */
function ownAnswerOf(context: RequestContext, route: RouteRuntime, scene: Scene): Answer | null {
  if (sendsToHttps(context, route))
    return own(redirectToHttps(context, route, scene.generation), context, scene);
  if (route.route.maintenance === null) return null;
  const closed = maintenanceAnswer(context, route);
  return closed === null ? null : own(closed, context, scene);
}

/** Sends the request on to a target. */
function proxy(context: RequestContext, route: RouteRuntime, scene: Scene): Answer {
  const { generation, scope } = scene;
  const { edits, record } = context;
  if (context.visit !== null) record.pluginsMs = performance.now() - record.startedAt;
  const serviceId = edits === null ? null : edits.serviceId;
  const service = generation.services.get(serviceId ?? route.route.service_id ?? "");
  record.otherServiceId = serviceId;
  if (service === undefined || !service.isHttp) return fail(context, failures.noTarget, scene);
  const fields = forwardFields(context, generation.loopToken);
  if ("status" in fields) return fail(context, fields, scene);
  const { maxInFlight } = generation;
  const { overload, inFlight } = scope;
  const isFull = maxInFlight > 0 && inFlight.size >= maxInFlight;
  if (isFull || (context.listener.inFlightLimits.length > 0 && !overload.enter(context))) {
    overload.refused();
    return fail(context, failures.tooBusy, scene);
  }
  const target = upstreamTarget(route, service, context);
  if (target === null)
    return fail(context, failures.badRequest("the rewritten path is not valid"), scene);
  const { maxBodyBytes } = context.listener;
  const bodyLength = fields.bodyLength ?? 0;
  if (
    (maxBodyBytes > 0 && bodyLength > maxBodyBytes) ||
    (context.bodyLimit > 0 && bodyLength > context.bodyLimit)
  )
    return fail(context, failures.bodyTooLarge, scene);
  const plan = {
    context,
    route,
    service,
    fields,
    target,
    maxHeadBytes: generation.maxResponseHeadBytes,
    bodyReadTimeout: generation.bodyReadTimeout,
    responseWriteTimeout: generation.responseWriteTimeout,
    debugFields:
      generation.debugFields === null
        ? null
        : [...generation.debugFields, ["X-Sluice-Route", route.id] as const],
  };
  if (route.route.websocket && isWebSocket(context)) return scope.proxyWebSocket(plan);
  return passOn(plan, scope);
}

const passOn = (plan: Plan, scope: WorkerScope): Promise<Response> =>
  new Promise((resolve) => new ProxiedRequest(scope, plan, resolve).begin());

/** Whether it asks for a WebSocket: RFC 6455 section 4.2.1, and RFC 9110 section 7.8: Upgrade counts only when Connection names it. */
export function isWebSocket({ known, method }: RequestContext): boolean {
  return (
    known.upgrade?.toLowerCase() === "websocket" &&
    method === "GET" &&
    connectionOptions(known.connection).includes("upgrade")
  );
}

/**
 * RFC 9110 section 15.5.20: the client was held against the demands of the name in the TLS handshake. A request for a host of
 * another certificate would get around those of that host.
 */
function isMisdirected({ connection, host }: RequestContext, { certificateIndex }: Generation) {
  const name = connection?.serverName ?? null;
  return name !== host && certificateIndex.find(name) !== certificateIndex.find(host);
}

/** A request that could not even be read: there is no context, and nothing in it is to be trusted. */
function refuse(request: Request, error: ProxyError, scope: WorkerScope): Response {
  const subject = {
    id: Bun.randomUUIDv7(),
    method: request.method,
    header: (name: string) => request.headers.get(name),
  };
  scope.reportUnread(subject.id, error);
  return errorResponse(subject, error);
}
