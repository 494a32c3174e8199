// Explains how the gateway would serve a request, with the code that serves one; sends nothing and counts nothing.
import { HeaderBlock } from "../http/header-block.ts";
import type { HttpEngine } from "../model/listener.ts";
import { asksForConsumer } from "../pdk/condition.ts";
import type {
  ExplainedPlugin,
  ExplainedRequest,
  ExplainedTarget,
  Explanation,
} from "../snapshot/explanation.ts";
import type { ListenerPlan } from "../snapshot/snapshot.ts";
import { failures } from "./error.ts";
import type { Generation } from "./generation.ts";
import { portKey } from "./listener/shared-port.ts";
import { mismatchInWords } from "./mismatch.ts";
import type { Geo } from "./plugin/geo.ts";
import { PluginContext } from "./plugin/plugin-context.ts";
import { ClientRequest } from "./request/client-request.ts";
import {
  maintenanceResponse,
  redirectsToHttps,
  redirectToHttps,
} from "./request/local-responses.ts";
import { readRawPath } from "./request/raw-target.ts";
import { chooseUpgrade } from "./request/upgrade-choice.ts";
import { upstreamHost, upstreamTarget } from "./request/upstream-request.ts";
import { chainOf, type RouteRuntime } from "./route-runtime.ts";
import type { ClientStream } from "./server/client-stream.ts";
import type { ServiceRuntime, TargetRuntime } from "./service-runtime.ts";
import { writeUpstreamFields } from "./upstream/request-writer.ts";
import { handshakeProblem } from "./websocket/handshake-fields.ts";
import type { WorkerServices } from "./worker-services.ts";

const MAX_CANDIDATES = 100;

const NO_LISTENER = "no listener at this port serves the host";

type ExplainedOutcome = Pick<
  Explanation,
  "outcome" | "status" | "detail" | "targets" | "upgrade"
> & {
  readonly serviceId?: string;
};

const outcomeOf = (
  outcome: ExplainedOutcome["outcome"],
  status: number,
  detail: string | null,
): ExplainedOutcome => ({
  outcome,
  status,
  detail,
  targets: [],
  upgrade: null,
});

/** What the pipeline would do. Any worker can answer, because all serve the same version. */
export function explain(
  generation: Generation,
  asked: ExplainedRequest,
  {
    worker,
    engineOf,
  }: {
    readonly worker: WorkerServices;
    readonly engineOf: (plan: ListenerPlan) => HttpEngine | null;
  },
): Explanation {
  const listenerId = listenerFor(generation, new URL(asked.url));
  const plan = generation.listeners.get(listenerId ?? "");
  const engine = plan === undefined ? null : engineOf(plan);
  const nothing = {
    listenerId,
    engine,
    routeId: null,
    pathHandling: null,
    serviceId: null,
    candidates: [],
    plugins: [],
  };
  const rest = { ...nothing, routes: generation.routes.router.size };
  const listener =
    plan && generation.entries.get(portKey(plan.listener.address, plan.listener.port));
  if (listener === undefined)
    return { ...rest, ...outcomeOf("refused", 0, "no listener speaks this scheme") };
  const stream = streamOf(asked, engine === "sluice");
  const request = new ClientRequest(stream, listener, { generation, worker });
  const problem = request.read();
  if (problem !== null) return { ...rest, ...outcomeOf("refused", problem.status, problem.detail) };
  const { servesNoHost, id } = request.listener;
  const { routes } = generation;
  const route = servesNoHost ? null : routes.match(request);
  request.route = route;
  const unread = route?.isRaw === true ? readRawPath(request) : null;
  const candidates = routes.router
    .rankCandidates(request, MAX_CANDIDATES)
    .map(({ entry: candidate, position, mismatch }) => ({
      routeId: candidate.id,
      position,
      reason:
        mismatch === null ? null : mismatchInWords(routes.of(candidate).route, mismatch, request),
    }));
  const outcome =
    route === null
      ? outcomeOf(
          "default_site",
          failures.noRoute.status,
          servesNoHost ? NO_LISTENER : failures.noRoute.detail,
        )
      : unread === null
        ? routeOutcome(request, route)
        : outcomeOf("refused", unread.status, unread.detail);
  return {
    ...rest,
    ...outcome,
    listenerId: servesNoHost ? null : id,
    routeId: route?.id ?? null,
    pathHandling: route?.route.path_handling ?? null,
    candidates,
    plugins: explainPlugins(request, worker.geo),
    serviceId: outcome.serviceId ?? null,
  };
}

/** The listener with the scheme and port of the URL, else the first with its scheme. */
function listenerFor(generation: Generation, url: URL): string | null {
  const protocol = url.protocol.slice(0, -1);
  const port = Number(url.port) || (protocol === "https" ? 443 : 80);
  const fitting = [...generation.listeners.values()].filter(
    ({ listener }) => listener.protocol === protocol,
  );
  return (fitting.find(({ listener }) => listener.port === port) ?? fitting[0])?.id ?? null;
}

/** The request as a ClientStream; a Request object would not accept every method. `isOwn`: the gateway's engine serves it. */
function streamOf(asked: ExplainedRequest, isOwn: boolean): ClientStream {
  const url = new URL(asked.url);
  // No client sends it.
  url.hash = "";
  const refused = (): never => {
    throw new Error("an explained request has no client");
  };
  return {
    method: asked.method,
    url: url.href,
    ...(isOwn ? { rawTarget: rawTargetOf(asked.url) } : {}),
    fields: HeaderBlock.of(new Headers({ host: url.host, ...asked.headers }).toJSON()),
    problem: null,
    awaitsContinue: false,
    connection: null,
    features: { hasTrailers: true, readsTrailers: true, keepsLength: true, hasInterim: true },
    httpVersion: isOwn ? "1.1" : null,
    ...(isOwn ? { switchProtocols: refused } : {}),
    hasBody: false,
    openBody: refused,
    setTrailers: refused,
    sendInterim: refused,
    signal: new AbortController().signal,
    peerAddress: () => asked.clientIp,
    peerPort: 0,
    suspendIdleTimeout() {},
    restoreIdleTimeout() {},
    closeAfterResponse() {},
    respond: refused,
    start: refused,
    upgrade: refused,
    abort: refused,
  };
}

/** What a client would send for the URL that does not change it. */
function rawTargetOf(url: string): string {
  const [, target = ""] = /^[^:]*:\/\/[^/?#]*([^#]*)/.exec(url) ?? [];
  return target.startsWith("/") ? target : `/${target}`;
}

function routeOutcome(request: ClientRequest, route: RouteRuntime): ExplainedOutcome {
  if (redirectsToHttps(request, route)) {
    const { fields, status } = redirectToHttps(request, route);
    return outcomeOf("redirect", status, fields.get("location"));
  }
  const closed = maintenanceResponse(request, route);
  if (closed !== null) return outcomeOf("maintenance", closed.status, failures.maintenance.detail);
  const service = request.generation.services.get(route.route.service_id ?? "");
  const { status, detail } = failures.noTarget;
  if (service === undefined || !service.isHttp) return outcomeOf("unavailable", status, detail);
  const serviceId = service.id;
  const problem = writeUpstreamFields(request);
  if (problem !== null)
    return { ...outcomeOf("refused", problem.status, problem.detail), serviceId };
  const path = upstreamTarget(request, route, service);
  if (path === null)
    return { ...outcomeOf("refused", 400, "the rewritten path is not valid"), serviceId };
  if (service.targets.length === 0)
    return { ...outcomeOf("unavailable", status, detail), serviceId };
  const targets = service.targets.map((target): ExplainedTarget => ({
    targetId: target.id,
    url: urlOf(service, target) + path,
    host: upstreamHost({ request, route, service }, target),
  }));
  const outcome = { outcome: "proxy", status: 0, detail: null, targets, serviceId } as const;
  if (request.known.upgrade === null) return { ...outcome, upgrade: null };
  const choice = chooseUpgrade(request, route, service);
  if (choice.kind === "none")
    return { ...outcome, upgrade: { protocols: null, reason: choice.reason } };
  if (choice.kind === "other")
    return {
      ...outcome,
      outcome: "upgrade",
      upgrade: { protocols: choice.protocols, reason: null },
    };
  const wrong = namesHandshake(request) ? handshakeProblem(request) : null;
  if (wrong !== null) return { ...outcomeOf("refused", wrong.status, wrong.detail), serviceId };
  return { ...outcome, outcome: "websocket", upgrade: { protocols: "websocket", reason: null } };
}

/** A hypothetical request may leave out what a client adds to every handshake. */
const namesHandshake = (request: ClientRequest): boolean =>
  request.header("sec-websocket-key") !== null || request.header("sec-websocket-version") !== null;

function urlOf(service: ServiceRuntime, { endpoint, authority }: TargetRuntime): string {
  const address = endpoint.addresses.toJSON();
  return `${service.service.protocol}://${address.startsWith("unix:") ? `${address}:` : authority}`;
}

/** The plugins that would run, in their order; runs none of them. */
function explainPlugins(request: ClientRequest, geo: Geo): ExplainedPlugin[] {
  const { generation, route } = request;
  const { plugins, consumers } = generation;
  const chain = route === null ? plugins.unmatched : chainOf(route, plugins);
  if (chain === null) return [];
  const { cursor } = new PluginContext(request, chain, {
    consumers,
    country: geo.country,
    asn: geo.asn,
    hasService: () => false,
    serviceNamed: () => null,
    refetch: () => Promise.reject(new Error("the request was not made")),
    failed() {},
    decided() {},
    deferLog() {},
  });
  return chain.all.map((runtime) => {
    const { when, id } = runtime.plan;
    const isOpen = when !== null && asksForConsumer(when);
    return {
      id,
      phases: runtime.definition.phases.filter((phase) => phase !== "connect"),
      applies: isOpen ? null : cursor.applies(runtime),
    };
  });
}
