// Says what would become of a request that nobody has sent, by the very steps that serve one; sends nothing and counts nothing.
import type { Server } from "bun";
import type { Geo } from "./plugin/geo.ts";
import { explainPlugins } from "./plugin/explain-plugins.ts";
import type { ExplainedRequest, ExplainedTarget, Explanation } from "../snapshot/explanation.ts";
import { failures } from "./error.ts";
import type { Generation } from "./generation.ts";
import { isWebSocket } from "./handler.ts";
import { maintenanceAnswer, redirectToHttps, sendsToHttps } from "./local-answer.ts";
import { mismatchInWords } from "./mismatch.ts";
import { readRequest, RequestContext } from "./request-context.ts";
import { type RouteRuntime, upstreamHost, upstreamTarget } from "./route-runtime.ts";
import type { ServiceRuntime, TargetRuntime } from "./service-runtime.ts";
import { forwardFields } from "./upstream/request-writer.ts";

const MAX_CANDIDATES = 100;

type Verdict = Pick<Explanation, "outcome" | "status" | "detail" | "targets"> & {
  readonly serviceId?: string;
};

const answered = (outcome: Verdict["outcome"], status: number, detail: string | null): Verdict => ({
  outcome,
  status,
  detail,
  targets: [],
});

/** As `handle` would serve it. A worker that is asked answers for all: they serve the same version. */
export function explain(generation: Generation, request: ExplainedRequest, geo: Geo): Explanation {
  const listenerId = listenerFor(generation, new URL(request.url));
  const nothing = { listenerId, routeId: null, serviceId: null, candidates: [], plugins: [] };
  const rest = { ...nothing, routes: generation.routes.router.size };
  const context = contextOf(generation, listenerId, request);
  if (context === null)
    return { ...rest, ...answered("refused", 0, "no listener speaks this scheme") };
  if (!(context instanceof RequestContext))
    return { ...rest, ...answered("refused", context.status, context.detail) };
  const { routes } = generation;
  const entry = routes.router.match(context);
  const route = entry === null ? null : routes.of(entry);
  const candidates = routes.router
    .standings(context, MAX_CANDIDATES)
    .map(({ entry: candidate, position, mismatch }) => ({
      routeId: candidate.id,
      position,
      reason:
        mismatch === null ? null : mismatchInWords(routes.of(candidate).route, mismatch, context),
    }));
  const verdict =
    route === null
      ? answered("default_site", failures.noRoute.status, failures.noRoute.detail)
      : verdictOf(generation, route, context);
  return {
    ...rest,
    ...verdict,
    routeId: route?.id ?? null,
    candidates,
    plugins: explainPlugins(context, { generation, route, geo }),
    serviceId: verdict.serviceId ?? null,
  };
}

/** The one with the scheme and port of the URL, else the first with its scheme. */
function listenerFor(generation: Generation, url: URL): string | null {
  const protocol = url.protocol.slice(0, -1);
  const port = Number(url.port) || (protocol === "https" ? 443 : 80);
  const fitting = [...generation.listeners.values()].filter(
    ({ listener }) => listener.protocol === protocol,
  );
  return (fitting.find(({ listener }) => listener.port === port) ?? fitting[0])?.id ?? null;
}

function contextOf(generation: Generation, listenerId: string | null, asked: ExplainedRequest) {
  const listener = generation.listenerFacts.get(listenerId ?? "");
  if (listener === undefined) return null;
  const url = new URL(asked.url);
  // No client sends it.
  url.hash = "";
  const headers = new Headers({ host: url.host, ...asked.headers });
  // What is read of a request before it has a route: a real one would not take every method.
  const request = { url: url.href, method: asked.method, headers, body: null };
  const server = { requestIP: () => ({ address: asked.clientIp }) };
  return readRequest({
    request: request as unknown as Request,
    server: server as unknown as Server<unknown>,
    listener,
    connection: null,
  });
}

function verdictOf(generation: Generation, route: RouteRuntime, context: RequestContext): Verdict {
  if (sendsToHttps(context, route)) {
    const { headers, status } = redirectToHttps(context, route, generation);
    return answered("redirect", status, headers.get("location"));
  }
  const closed = route.route.maintenance === null ? null : maintenanceAnswer(context, route);
  if (closed !== null) return answered("maintenance", closed.status, failures.maintenance.detail);
  const service = generation.services.get(route.route.service_id ?? "");
  const { status, detail } = failures.noTarget;
  if (service === undefined || !service.isHttp) return answered("unavailable", status, detail);
  const serviceId = service.id;
  const fields = forwardFields(context, generation.loopToken);
  if ("status" in fields)
    return { ...answered("refused", fields.status, fields.detail), serviceId };
  const path = upstreamTarget(route, service, context);
  if (path === null)
    return { ...answered("refused", 400, "the rewritten path is not valid"), serviceId };
  if (service.targets.length === 0)
    return { ...answered("unavailable", status, detail), serviceId };
  const targets = service.targets.map((target): ExplainedTarget => ({
    targetId: target.id,
    url: urlOf(service, target) + path,
    host: upstreamHost({ route, service }, target, context),
  }));
  const outcome = route.route.websocket && isWebSocket(context) ? "websocket" : "proxy";
  return { outcome, status: 0, detail: null, targets, serviceId };
}

function urlOf(service: ServiceRuntime, { endpoint, authority }: TargetRuntime): string {
  const place = endpoint.addresses.toJSON();
  return `${service.service.protocol}://${place.startsWith("unix:") ? `${place}:` : authority}`;
}
