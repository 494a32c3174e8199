// The path of one client request, phase by phase as phases.ts lists them; knows no engine and no configuration store.
import { readGrpcTimeout } from "../../http/grpc.ts";
import { failures, type ProxyError } from "../error.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { ListenerRuntime } from "../listener/listener-runtime.ts";
import type { PluginHost } from "../plugin/plugin-host.ts";
import { runPluginChain } from "../plugin/run-plugin-chain.ts";
import { chainOf } from "../route-runtime.ts";
import type { ClientStream } from "../server/client-stream.ts";
import { writeUpstreamFields } from "../upstream/request-writer.ts";
import { WebSocketHandshake } from "../websocket/websocket-handshake.ts";
import { ClientRequest, type ServeContext } from "./client-request.ts";
import { defaultSiteResponse, routeResponse } from "./local-responses.ts";
import { ProxyTransaction } from "./proxy-transaction.ts";
import { respondClosed, respondError, respondLocal, respondUnread } from "./respond.ts";
import { chooseUpgrade } from "./upgrade-choice.ts";
import { UpgradeTransaction } from "./upgrade-transaction.ts";
import { upstreamTarget } from "./upstream-request.ts";

/** The live version, as requests use it; created on activation. */
export interface Pipeline extends ServeContext {
  readonly pluginHost: PluginHost;
}

/** Serves one request to its end with this version of the configuration. */
export function serve(stream: ClientStream, listener: ListenerRuntime, pipeline: Pipeline): void {
  const { clientAuthKey, choice } = listener;
  if (
    choice === null &&
    clientAuthKey !== null &&
    stream.connection?.clientAuthKey !== clientAuthKey
  ) {
    // The connection was accepted with other client certificate settings.
    stream.abort();
    return;
  }
  if (stream.problem !== null) return respondUnread(stream, stream.problem, pipeline.worker);
  const request = new ClientRequest(stream, listener, pipeline);
  const problem = request.read();
  if (problem !== null) return respondUnread(stream, problem, pipeline.worker);
  if (isRefused(request, listener)) return;
  const { routes, plugins: instances } = pipeline.generation;
  const route = request.listener.servesNoHost ? null : routes.match(request);
  request.route = route;
  const chain = instances.isEmpty
    ? null
    : route === null
      ? instances.unmatched
      : chainOf(route, instances);
  if (chain === null) {
    if (!respondFromRoute(request)) forward(request);
    return;
  }
  const plugins = pipeline.pluginHost.contextOf(request, chain);
  request.plugins = plugins;
  // The route's own response does not depend on the client's identity.
  if (!respondFromRoute(request)) runPluginChain(plugins, forward);
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
    worker.board.pressure !== 0
      ? worker.overload.shed()
      : isMisdirected(request, entry)
        ? failures.misdirected
        : request.isGrpc && !request.stream.features.hasTrailers
          ? refuseGrpc(request)
          : worker.aborted.isWatching
            ? worker.aborted.refusal(request)
            : null;
  if (error !== null) respondError(request, error);
  return error !== null;
}

/** A client that connected before its host name needed the full engine must connect again. */
function refuseGrpc({ stream: { connection }, generation, listener }: ClientRequest): ProxyError {
  if (connection !== null && generation.engineHosts.has(connection.serverName, listener.id))
    connection.isOutdated = true;
  return failures.grpcEngine;
}

/** Sends the route's own response; false: it has none. */
function respondFromRoute(request: ClientRequest): boolean {
  const { route } = request;
  if (route === null || !route.mayRespond) return false;
  const response = routeResponse(request, route);
  if (response === null) return false;
  respondLocal(request, response);
  return true;
}

/** Forwards a request, or a copy of it, to which no plugin has responded. */
export function forward(request: ClientRequest): void {
  const { route, generation, edits } = request;
  if (route === null) return respondNoRoute(request);
  if (request.plugins !== null) request.pluginsMs = performance.now() - request.startedAt;
  const serviceId = edits === null ? null : edits.serviceId;
  const service = generation.services.get(serviceId ?? route.route.service_id ?? "");
  request.otherServiceId = serviceId;
  const timeout = request.isGrpc || request.callsGrpc ? request.header("grpc-timeout") : null;
  if (timeout !== null && !setDeadline(request, timeout))
    return respondError(request, failures.badRequest("the field grpc-timeout is not valid"));
  if (service === undefined || !service.isHttp) return respondError(request, failures.noTarget);
  const problem = writeUpstreamFields(request);
  if (problem !== null) return respondError(request, problem);
  if (!isAdmitted(request)) {
    request.worker.overload.refused();
    return respondError(request, failures.tooBusy);
  }
  const target = upstreamTarget(request, route, service);
  if (target === null)
    return respondError(request, failures.badRequest("the rewritten path is not valid"));
  if (isBodyTooLarge(request)) return respondError(request, failures.bodyTooLarge);
  request.upstreamTarget = target;
  if (request.upgrade === null) return new ProxyTransaction(request, route, service).begin();
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

/** Whether the request stays within the limits of requests in flight. */
function isAdmitted(request: ClientRequest): boolean {
  const { overload, inFlight } = request.worker;
  const { maxInFlight } = request.generation;
  if (maxInFlight > 0 && inFlight.size >= maxInFlight) return false;
  return request.listener.inFlightLimits.length === 0 || overload.enter(request);
}

function isBodyTooLarge(request: ClientRequest): boolean {
  if (request.isGrpcCall) return false;
  const { listener, bodyLimit, upstreamBodyLength } = request;
  const { maxBodyBytes } = listener;
  const length = upstreamBodyLength ?? 0;
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
  // Without an acceptor there is no client certificate.
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
