// Serializes spans as OTLP JSON, with attributes of the semantic conventions for HTTP; knows no queue and no collector.
import type { RequestContext, RequestResult } from "../../pdk/context.ts";

/** The ids of a request's spans. */
export interface Trace {
  readonly traceId: string;
  /** Span id of the caller; empty: none. */
  readonly parentId: string;
  readonly serverId: string;
  /** Client span id; empty: the request did not go upstream. */
  readonly clientId: string;
  readonly traceState: string;
}

/** SPAN_KIND_SERVER and SPAN_KIND_CLIENT of the OTLP enumeration. */
const [SERVER, CLIENT] = [2, 3];

/** Known methods, which keep the cardinality low; others go into an attribute. */
const METHODS: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY"],
]);

/** Longer texts are truncated. */
const MAX_TEXT = 1024;

const text = (key: string, value: string): string =>
  `{"key":"${key}","value":{"stringValue":${JSON.stringify(value.slice(0, MAX_TEXT))}}}`;
const integer = (key: string, value: number): string =>
  `{"key":"${key}","value":{"intValue":"${value}"}}`;

/** The spans of a request that has ended, separated by commas; whole objects of `ScopeSpans.spans`. */
export function writeSpans(
  context: RequestContext,
  result: RequestResult,
  trace: Trace,
): readonly string[] {
  const { startedAt } = context;
  const server = head(trace, { id: trace.serverId, parent: trace.parentId, kind: SERVER });
  const times = timesOf(startedAt, 0, result.durationMs);
  const spans = [
    `${server},"name":${JSON.stringify(nameOf(context))},${times},"attributes":[${serverAttributes(context, result)}]${statusOf(result.status >= 500)}}`,
  ];
  const { upstream } = result;
  if (upstream === null || trace.clientId === "") return spans;
  const client = head(trace, { id: trace.clientId, parent: trace.serverId, kind: CLIENT });
  const { startMs, endMs } = upstream;
  const hasFailed = result.upstreamStatus === null || result.upstreamStatus >= 400;
  spans.push(
    `${client},"name":"${methodOf(context)}",${timesOf(startedAt, startMs, endMs)},"attributes":[${clientAttributes(context, result)}]${statusOf(hasFailed)}}`,
  );
  return spans;
}

function head(
  { traceId, traceState }: Trace,
  span: { readonly id: string; readonly parent: string; readonly kind: number },
): string {
  const parent = span.parent === "" ? "" : `,"parentSpanId":"${span.parent}"`;
  const state = traceState === "" ? "" : `,"traceState":${JSON.stringify(traceState)}`;
  return `{"traceId":"${traceId}","spanId":"${span.id}"${parent}${state},"kind":${span.kind}`;
}

/** Nanoseconds as a string, because they exceed the exact range of numbers. */
function timesOf(startedAt: number, startMs: number, endMs: number): string {
  const nanoseconds = (ms: number) => `${Math.round((startedAt + ms) * 1000)}000`;
  return `"startTimeUnixNano":"${nanoseconds(startMs)}","endTimeUnixNano":"${nanoseconds(Math.max(startMs, endMs))}"`;
}

/** STATUS_CODE_ERROR; unset otherwise. */
const statusOf = (hasFailed: boolean) => (hasFailed ? ',"status":{"code":2}' : "");

const methodOf = ({ method }: RequestContext) => (METHODS.has(method) ? method : "_OTHER");

/** Low cardinality: the name of the route, not the path. */
function nameOf(context: RequestContext): string {
  const method = METHODS.has(context.method) ? context.method : "HTTP";
  return context.route?.name ? `${method} ${context.route.name}` : method;
}

function serverAttributes(context: RequestContext, result: RequestResult): string {
  const { host, route, service, consumer, reasons } = context;
  const method = methodOf(context);
  const all = [
    text("http.request.method", method),
    text("url.scheme", context.scheme),
    // Without the query, which may contain secrets.
    text("url.path", context.path),
    text("server.address", host),
    text("client.address", context.clientAddress()),
    text("network.peer.address", context.peerAddress()),
    integer("http.response.status_code", result.grpcStatus === null ? result.status : 200),
    integer("http.request.body.size", result.bytesIn),
    integer("http.response.body.size", result.bytesOut),
    text("sluice.request.id", context.id),
  ];
  if (result.grpcStatus !== null) all.push(...grpcAttributes(context, result.grpcStatus));
  if (method === "_OTHER") all.push(text("http.request.method_original", context.method));
  const agent = context.header("user-agent");
  if (agent !== null) all.push(text("user_agent.original", agent));
  if (result.status >= 500) all.push(text("error.type", String(result.status)));
  if (route !== null) all.push(text("sluice.route", route.name ?? route.id));
  if (service !== null) all.push(text("sluice.service", service.name ?? service.id));
  if (consumer !== null) all.push(text("sluice.consumer", consumer.username));
  if (reasons.length > 0) all.push(text("sluice.reasons", reasons.join(" ")));
  return all.join(",");
}

/** Semantic conventions for gRPC; the path names service and method. */
function grpcAttributes({ path }: RequestContext, status: number): string[] {
  const [, service = "", method = ""] = /^\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  const all = [text("rpc.system", "grpc"), integer("rpc.grpc.status_code", status)];
  if (service !== "") all.push(text("rpc.service", service), text("rpc.method", method));
  return all;
}

function clientAttributes(context: RequestContext, result: RequestResult): string {
  const { upstreamStatus, attempts, targetId } = result;
  const [, host = "", port = ""] = /^(.*?)(?::(\d+))?$/.exec(result.upstream?.address ?? "") ?? [];
  const all = [
    text("http.request.method", methodOf(context)),
    text("server.address", host.replace(/^\[|\]$/g, "")),
    text("sluice.target.id", targetId ?? ""),
  ];
  if (port !== "") all.push(integer("server.port", Number(port)));
  if (attempts > 1) all.push(integer("http.request.resend_count", attempts - 1));
  if (result.grpcStatus !== null) all.push(...grpcAttributes(context, result.grpcStatus));
  else if (upstreamStatus !== null) all.push(integer("http.response.status_code", upstreamStatus));
  if (upstreamStatus === null || upstreamStatus >= 400)
    all.push(text("error.type", upstreamStatus === null ? "no_answer" : String(upstreamStatus)));
  return all.join(",");
}

/** Resource attributes, as the elements of a JSON array. */
export function writeResource(attributes: Readonly<Record<string, string>>): string {
  const all = { "service.name": "sluice", ...attributes };
  return Object.entries(all)
    .map(([key, value]) => text(JSON.stringify(key).slice(1, -1), value))
    .join(",");
}

/** A whole `ExportTraceServiceRequest`. */
export const writeRequest = (resource: string, spans: readonly string[]): string =>
  `{"resourceSpans":[{"resource":{"attributes":[${resource}]},"scopeSpans":[{"scope":{"name":"sluice"},"spans":[${spans.join(",")}]}]}]}`;
