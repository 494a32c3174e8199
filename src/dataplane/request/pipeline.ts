// The path of one client request, phase by phase as phases.ts lists them; knows no engine and no configuration store.
import { readGrpcTimeout } from "../../http/grpc.ts";
import { failures } from "../error.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { ListenerRuntime } from "../listener/listener-runtime.ts";
import type { PluginHost } from "../plugin/plugin-host.ts";
import { runPluginChain } from "../plugin/run-plugin-chain.ts";
import { chainOf, type RouteRuntime } from "../route-runtime.ts";
import type { StreamHandler } from "../server/bun-stream.ts";
import type { ClientStream } from "../server/client-stream.ts";
import type { ServiceRuntime } from "../service-runtime.ts";
import { writeUpstreamFields } from "../upstream/request-writer.ts";
import { WebSocketHandshake } from "../websocket/websocket-handshake.ts";
import type { WorkerServices } from "../worker-services.ts";
import { ClientRequest, type ServeContext } from "./client-request.ts";
import { defaultSiteResponse, routeResponse } from "./local-responses.ts";
import { ProxyTransaction } from "./proxy-transaction.ts";
import { readRawPath } from "./raw-target.ts";
import { respondClosed, respondError, respondLocal, respondUnread } from "./respond.ts";
import { chooseUpgrade } from "./upgrade-choice.ts";
import { UpgradeTransaction } from "./upgrade-transaction.ts";
import { upstreamTarget } from "./upstream-request.ts";

/** The live version, as requests use it; created on activation. */
export interface Pipeline extends ServeContext {
  readonly pluginHost: PluginHost;
}

/** What a worker serves now. */
export interface Serving {
  /** Of the live version; null: none yet. */
  pipeline: Pipeline | null;
  /** Another process or thread listens at the same ports and takes over. */
  isHandingOver: boolean;
}

/** Serves the requests of the port with this `portKey`, which the listener with this id binds. */
export function streamHandler(
  serving: Serving,
  {
    id,
    key,
    worker,
  }: { readonly id: string; readonly key: string; readonly worker: WorkerServices },
): StreamHandler {
  return (stream) => {
    if (serving.isHandingOver) stream.closeAfterResponse();
    const { pipeline } = serving;
    if (pipeline === null) return respondUnread(stream, failures.starting, null);
    const { entries, listenerRuntimes } = pipeline.generation;
    const listener = entries.get(key) ?? listenerRuntimes.get(id);
    // Bound during `prepare`: not served before `activate`.
    if (listener === undefined) return respondUnread(stream, failures.starting, null);
    try {
      serve(stream, listener, pipeline);
    } catch (error) {
      // A bug must not show Bun's error page or end the worker.
      respondUnread(stream, failures.internal(error), worker);
    }
  };
}

/** Serves one request to its end with this version of the configuration. */
function serve(stream: ClientStream, listener: ListenerRuntime, pipeline: Pipeline): void {
  const { clientAuthKey, choice } = listener;
  const { connection } = stream;
  if (choice === null && clientAuthKey !== null && connection?.clientAuthKey !== clientAuthKey) {
    // The connection was accepted with other client certificate settings.
    stream.abort();
    return;
  }
  if (stream.problem !== null) return respondUnread(stream, stream.problem, pipeline.worker);
  const request = new ClientRequest(stream, listener, pipeline);
  const problem = request.read();
  if (problem !== null) return respondUnread(stream, problem, pipeline.worker);
  const { challenges, pressure, aborted } = pipeline.worker;
  const mayBeRefused =
    challenges.hasTokens ||
    pressure[0] !== 0 ||
    request.isGrpc ||
    aborted.isWatching ||
    choice !== null ||
    request.listener.clientAuthKey !== null ||
    (connection !== null && connection.serverName !== null);
  if (mayBeRefused && isRefused(request, listener)) return;
  const { routes, plugins: instances } = pipeline.generation;
  const entry = request.listener.servesNoHost ? null : routes.router.match(request);
  const route = entry === null ? null : (entry.value ?? routes.of(entry));
  request.route = route;
  const unread = route?.isRaw === true ? readRawPath(request) : null;
  if (unread !== null) return respondError(request, unread);
  const chain = instances.isEmpty
    ? null
    : route === null
      ? instances.unmatched
      : chainOf(route, instances);
  const isForwarded = route === null || !route.mayRespond;
  if (chain === null) {
    if (isForwarded || !respondFromRoute(request, route)) forward(request);
    return;
  }
  const plugins = pipeline.pluginHost.contextOf(request, chain);
  request.plugins = plugins;
  // The route's own response does not depend on the client's identity.
  if (isForwarded || !respondFromRoute(request, route)) runPluginChain(plugins, forward);
}

/** Checks before routing, which no route's configuration affects. */
function isRefused(request: ClientRequest, entry: ListenerRuntime): boolean {
  const { worker } = request;
  if (worker.challenges.hasTokens) {
    // Before everything that is configured, so that no configuration can prevent a renewal.
    const response = worker.challenges.respond(request.method, request.path);
    if (response !== null) {
      respondLocal(request, response);
      return true;
    }
  }
  const error =
    worker.pressure[0] !== 0
      ? worker.overload.shed()
      : isMisdirected(request, entry)
        ? failures.misdirected
        : request.isGrpc && !request.stream.features.hasTrailers
          ? failures.grpcEngine
          : worker.aborted.isWatching
            ? worker.aborted.refusal(request)
            : null;
  if (error !== null) respondError(request, error);
  return error !== null;
}

/** Sends the route's own response; false: it has none. */
function respondFromRoute(request: ClientRequest, route: RouteRuntime): boolean {
  const response = routeResponse(request, route);
  if (response === null) return false;
  respondLocal(request, response);
  return true;
}

/** Forwards a request, or a copy of it, to which no plugin has responded. */
export function forward(request: ClientRequest): void {
  const { route, generation, edits, worker } = request;
  if (route === null) return respondNoRoute(request);
  if (request.plugins !== null) request.pluginsMs = performance.now() - request.startedAt;
  const serviceId = edits === null ? null : edits.serviceId;
  const service = generation.services.get(serviceId ?? route.route.service_id ?? "");
  request.otherServiceId = serviceId;
  const mayCallGrpc = request.isGrpc || (edits !== null && request.callsGrpc);
  const timeout = mayCallGrpc ? request.header("grpc-timeout") : null;
  if (timeout !== null && !setDeadline(request, timeout))
    return respondError(request, failures.badRequest("the field grpc-timeout is not valid"));
  if (service === undefined || !service.isHttp) return respondError(request, failures.noTarget);
  const problem = writeUpstreamFields(request);
  if (problem !== null) return respondError(request, problem);
  const { maxInFlight } = generation;
  const isAdmitted =
    (maxInFlight === 0 || worker.inFlight.size < maxInFlight) &&
    (request.listener.inFlightLimits.length === 0 || worker.overload.enter(request));
  if (!isAdmitted) {
    worker.overload.refused();
    return respondError(request, failures.tooBusy);
  }
  const isAsItIs =
    edits === null &&
    service.service.path === "" &&
    route.prefixes.length === 0 &&
    route.rewrite === null;
  const target = isAsItIs ? request.target : upstreamTarget(request, route, service);
  if (target === null)
    return respondError(request, failures.badRequest("the rewritten path is not valid"));
  if (request.upstreamBodyLength !== null && isBodyTooLarge(request, request.upstreamBodyLength))
    return respondError(request, failures.bodyTooLarge);
  request.upstreamTarget = target;
  if (request.known.upgrade === null) return new ProxyTransaction(request, route, service).begin();
  switchProtocols(request, route, service);
}

/** A request that asks for an upgrade. */
function switchProtocols(
  request: ClientRequest,
  route: RouteRuntime,
  service: ServiceRuntime,
): void {
  const choice = chooseUpgrade(request, route, service);
  if (choice.kind === "none") new ProxyTransaction(request, route, service).begin();
  else if (choice.kind === "websocket") new WebSocketHandshake(request, route, service).begin();
  else new UpgradeTransaction(request, { route, service }, choice.protocols).begin();
}

/** False: the field is not valid. */
function setDeadline(request: ClientRequest, timeout: string): boolean {
  const ms = readGrpcTimeout(timeout);
  if (ms === null) return false;
  request.grpcDeadline = request.startedAt + ms;
  return true;
}

function respondNoRoute(request: ClientRequest): void {
  const response = defaultSiteResponse(request, request.generation.settings.default_site);
  if (response === null) respondError(request, failures.noRoute);
  else if (response === "close") respondClosed(request);
  else respondLocal(request, response);
}

function isBodyTooLarge(request: ClientRequest, length: number): boolean {
  if (request.isGrpcCall) return false;
  const { listener, bodyLimit } = request;
  const { maxBodyBytes } = listener;
  return (maxBodyBytes > 0 && length > maxBodyBytes) || (bodyLimit > 0 && length > bodyLimit);
}

/**
 * RFC 9110 section 15.5.20: the TLS handshake used the certificate and client certificate settings of its server name.
 * A request for a host of another listener or certificate would bypass those of that host. A trusted proxy
 * may send requests for all hosts under one name. `entry`: the listener of the port.
 */
function isMisdirected(request: ClientRequest, entry: ListenerRuntime): boolean {
  const { connection } = request.stream;
  const { host, listener } = request;
  const asksCertificates = listener.clientAuthKey !== null;
  // Bun.serve asks for no client certificate.
  if (connection === null) return asksCertificates;
  if (entry.choice !== null && hasOtherRules(connection, listener)) return true;
  const { serverName: name } = connection;
  if (name === host || (name === null && !asksCertificates)) return false;
  const { certificateIndex: certificates } = request.generation;
  const own = certificates.find(host);
  if (asksCertificates) {
    if (certificates.find(name) !== own) return true;
  } else if (request.isFromTrustedProxy()) return false;
  if (name !== null && entry.choice !== null && entry.choice.find(name) !== listener) return true;
  return own !== null && certificates.find(name) !== own;
}

/** Whether the handshake was that of another listener at the port, whose rules this one does not accept. */
function hasOtherRules(
  { clientAuthKey, serverName, tlsVersion }: ConnectionInfo,
  listener: ListenerRuntime,
): boolean {
  if (clientAuthKey !== listener.clientAuthKey) return true;
  return serverName === null && listener.isTls13 && tlsVersion !== "TLSv1.3";
}
