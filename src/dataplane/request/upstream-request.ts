// The upstream request by route and service: path, host, timeouts, body; knows no socket.
import {
  canonicalPath,
  encodePath,
  replacePrefix,
  stripPrefix,
} from "../../http/request-target.ts";
import type { Route } from "../../model/route.ts";
import { type BodyReadLimits, NO_READ_LIMITS } from "../client-body.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import type { ExchangeTimeouts } from "../upstream/transport.ts";
import { RequestBody } from "../upstream/request-body.ts";
import { passesTrailers, upstreamTrailers } from "../upstream/request-writer.ts";
import type { ClientRequest } from "./client-request.ts";

/**
 * Path and query of the upstream request line; null when a rewrite yields an invalid path, or when a path that the target
 * receives as it came would follow another one, out of which it could climb.
 */
export function upstreamTarget(
  request: ClientRequest,
  runtime: RouteRuntime,
  service: ServiceRuntime,
): string | null {
  const base = service.service.path;
  const { edits } = request;
  if (runtime.isRaw && (base !== "" || edits?.hasOwnPath === true)) return null;
  if (edits !== null && (edits.hasOwnPath || edits.hasOwnQuery))
    return editedTarget(request, runtime, service);
  if (base === "" && runtime.prefixes.length === 0 && runtime.rewrite === null)
    return request.target;
  const path = upstreamPath(runtime, request.path);
  if (path === null) return null;
  const query = request.target.slice(request.target.length - request.query.length - 1);
  return query.startsWith("?") ? joinBase(base, path) + query : joinBase(base, path);
}

/** The request target with plugins' changes. */
function editedTarget(
  { edits, path: own }: ClientRequest,
  runtime: RouteRuntime,
  service: ServiceRuntime,
): string | null {
  if (edits === null) return null;
  const path = edits.hasOwnPath ? edits.path : upstreamPath(runtime, own);
  if (path === null) return null;
  const joined = joinBase(service.service.path, edits.hasOwnPath && path === "/" ? "" : path);
  return edits.query === "" ? joined : `${joined}?${edits.query}`;
}

/** Where nothing follows it, the service's path is sent as it is written: `/app` stays `/app`, and `/app/` stays `/app/`. */
function joinBase(base: string, path: string): string {
  if (path === "") return base === "" ? "/" : base;
  return base.endsWith("/") ? base + path.slice(1) : base + path;
}

/**
 * The path after stripping and rewriting by the route, "" when nothing is left of it or the client has asked for `/`; null when
 * it is invalid.
 */
function upstreamPath(runtime: RouteRuntime, own: string): string | null {
  const path = withPrefixChanged(runtime, own);
  if (runtime.rewrite === null) return path;
  const whole = path === "" ? "/" : path;
  const rewritten = whole.replace(runtime.rewrite.regex, runtime.rewrite.to);
  if (rewritten === "" || rewritten === whole) return rewritten === "" ? "" : path;
  return canonicalPath(encodePath(rewritten.startsWith("/") ? rewritten : `/${rewritten}`));
}

function withPrefixChanged({ prefixes, replacement }: RouteRuntime, own: string): string {
  if (own === "/" && replacement === null) return "";
  for (const prefix of prefixes) {
    const changed =
      replacement === null ? stripPrefix(own, prefix) : replacePrefix(own, prefix, replacement);
    if (changed !== null) return changed;
  }
  return own === "/" ? "" : own;
}

/** The Host header for a target: the client's, the target's or a fixed name. */
export function upstreamHost(
  {
    request,
    route,
    service,
  }: {
    readonly request: ClientRequest;
    readonly route: RouteRuntime;
    readonly service: ServiceRuntime;
  },
  target: TargetRuntime,
): string {
  const edited = request.edits?.host ?? null;
  if (edited !== null) return edited;
  const own = route.route.preserve_host;
  const mode = own === null ? service.service.host_header : own ? "preserve" : "target";
  if (mode === "preserve") return request.rawHost;
  return mode === "target" ? target.authority : mode;
}

/** The service's timeouts with the route's overrides. */
export const exchangeTimeouts = (
  own: Route["timeouts"],
  { timeouts: inherited }: ServiceRuntime,
): ExchangeTimeouts => ({
  connect: own.connect_timeout ?? inherited.connect,
  response: own.response_timeout ?? inherited.response,
  read: own.read_timeout ?? inherited.read,
  write: own.write_timeout ?? inherited.write,
});

/** The limits on reading the client's body. */
export const bodyReadLimits = ({
  generation,
  listener,
  route,
  isCopy,
  isGrpcCall,
}: ClientRequest): BodyReadLimits =>
  // gRPC streams may be idle in both directions.
  isCopy || isGrpcCall
    ? NO_READ_LIMITS
    : {
        ...generation.bodyReadTimeouts,
        minRate: route?.route.body_min_rate ?? listener.bodyMinRate,
      };

/** The upstream request body; null: none. */
export function requestBodyOf(request: ClientRequest): RequestBody | null {
  const { upstreamBodyLength: length, worker, listener, bodyLimit } = request;
  if (length === null) return null;
  const bytes = request.edits?.body ?? request.bodyBytes;
  const client = bytes === null ? request.readBody(bodyReadLimits(request)) : null;
  if (client === null && bytes === null) return null;
  const { maxBodyBytes } = listener;
  // 0 stands for no limit. Of a gRPC call the limits count messages.
  const maxBytes = request.isGrpcCall
    ? 0
    : bodyLimit === 0 || maxBodyBytes === 0
      ? bodyLimit + maxBodyBytes
      : Math.min(bodyLimit, maxBodyBytes);
  const { bodyStream: piped, isGrpcCall: keepsShort } = request;
  return new RequestBody({
    client,
    piped,
    bytes,
    length,
    keepsShort,
    maxBytes,
    awaitsContinue: () => request.stream.awaitsContinue,
    ...(client !== null && passesTrailers(request)
      ? { trailers: () => upstreamTrailers(request, client.trailers ?? []) }
      : {}),
    now: worker.inFlight.now,
  });
}
