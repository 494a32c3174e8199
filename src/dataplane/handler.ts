// The life of one HTTP request: read it, find its route, send it on; knows no socket and no configuration store.
import { connectionOptions } from "../http/hop-by-hop.ts";
import { errorResponse } from "./error-page.ts";
import { failures, type ProxyError } from "./error.ts";
import type { Generation } from "./generation.ts";
import { hangUp } from "./hang-up.ts";
import { type Plan, ProxiedRequest } from "./proxied-request.ts";
import { defaultSiteAnswer, maintenanceAnswer, redirectToHttps } from "./local-answer.ts";
import { readRequest, RequestContext, type RequestSource } from "./request-context.ts";
import { upstreamTarget } from "./route-runtime.ts";
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
  if (listener.clientAuthority !== null && isMisdirected(context, generation))
    return fail(context, failures.misdirected, scene);
  if (scope.aborted.refusesAny && scope.aborted.refuses(context.clientAddress()))
    return fail(context, failures.tooManyAborted, scene);
  const route = generation.router.match(context);
  if (route === null) {
    const site = defaultSiteAnswer(context, generation.settings.default_site);
    return site === null ? fail(context, failures.noRoute, scene) : own(site, context, scene);
  }
  if (route.redirectStatus > 0 && context.clientScheme() === "http")
    return own(redirectToHttps(context, route, generation), context, scene);
  if (route.route.maintenance !== null) {
    const closed = maintenanceAnswer(context, route);
    if (closed !== null) return own(closed, context, scene);
  }
  const service = generation.services.get(route.route.service_id ?? "");
  if (service === undefined || !service.isHttp) return fail(context, failures.noTarget, scene);
  const fields = forwardFields(context, generation.loopToken);
  if ("status" in fields) return fail(context, fields, scene);
  const { maxInFlight } = generation;
  if (maxInFlight > 0 && scope.inFlight.size >= maxInFlight)
    return fail(context, failures.tooBusy, scene);
  const target = upstreamTarget(route, service, context);
  if (target === null)
    return fail(context, failures.badRequest("the rewritten path is not valid"), scene);
  const { maxBodyBytes } = listener;
  if (maxBodyBytes > 0 && (fields.bodyLength ?? 0) > maxBodyBytes)
    return fail(context, failures.bodyTooLarge, scene);
  const plan = {
    context,
    route,
    service,
    fields,
    target,
    maxHeadBytes: generation.maxResponseHeadBytes,
    bodyReadTimeout: generation.bodyReadTimeout,
    debugFields:
      generation.debugFields === null
        ? null
        : [...generation.debugFields, ["X-Sluice-Route", route.id] as const],
  };
  if (route.route.websocket && isWebSocket(context)) return scope.proxyWebSocket(plan);
  return new Promise((resolve) => new ProxiedRequest(scope, plan, resolve).begin());
}

/** Whether it asks for a WebSocket: RFC 6455 section 4.2.1, and RFC 9110 section 7.8: Upgrade counts only when Connection names it. */
export function isWebSocket({ headers, method }: RequestContext): boolean {
  return (
    headers.upgrade?.toLowerCase() === "websocket" &&
    method === "GET" &&
    connectionOptions(headers.connection ?? null).includes("upgrade")
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

interface Scene {
  readonly generation: Generation;
  readonly scope: WorkerScope;
}

function fail(context: RequestContext, error: ProxyError, scene: Scene): Response {
  scene.scope.report(context, error);
  return own(errorResponse(context, error), context, scene);
}

/** An answer that no target gave. */
function own(response: Response, context: RequestContext, { generation, scope }: Scene): Response {
  for (const [name, value] of generation.debugFields ?? []) response.headers.set(name, value);
  scope.ended(context);
  return response;
}
