// otel-tracing: propagates W3C trace context and exports spans to an OpenTelemetry collector.
import { type Static, Type as t } from "@sinclair/typebox";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { destination } from "../pdk/destination.ts";
import { config, group, integer, milliseconds, nullable, secret, url } from "../pdk/fields.ts";
import { formatTraceParent, isFieldValue, isToken, parseTraceParent } from "../pdk/http.ts";
import type { PluginKit } from "../pdk/kit.ts";
import { Exporter } from "./otel-tracing/exporter.ts";
import { Ids } from "./otel-tracing/ids.ts";
import { type Trace, writeResource, writeSpans } from "./otel-tracing/span.ts";

const schema = config({
  endpoint: destination(
    nullable(
      url({
        description:
          "URL of an OTLP/HTTP collector, such as `http://collector:4318`; the default path is `/v1/traces`. Null: traces are propagated, and nothing is exported",
      }),
    ),
  ),
  headers: t.Record(
    t.String({ minLength: 1, maxLength: 256 }),
    secret({ description: "Value of the header" }),
    {
      default: {},
      maxProperties: 20,
      description: "Headers of requests to the collector, such as one with a token",
    },
  ),
  sample_rate: t.Number({
    minimum: 0,
    maximum: 1,
    default: 0.1,
    description:
      "Share of the traces started here that are sampled; propagated traces keep the caller's decision",
  }),
  resource_attributes: t.Record(
    t.String({ minLength: 1, maxLength: 256 }),
    t.String({ maxLength: 1024 }),
    {
      default: {},
      maxProperties: 50,
      description: "Resource attributes of the gateway; the default `service.name` is `sluice`",
    },
  ),
  batch: group(
    {
      max_size: integer(512, {
        minimum: 1,
        maximum: 10_000,
        description: "Spans that trigger a batch",
      }),
      max_delay: milliseconds(5000, "Maximum delay of a span in milliseconds"),
      max_queue: integer(4096, {
        minimum: 1,
        maximum: 100_000,
        description: "Queue size per worker; spans beyond it are dropped and counted",
      }),
      max_retry_time: milliseconds(60_000, "Milliseconds after which a failing batch is dropped"),
      timeout: milliseconds(10_000, "Timeout of one request to the collector in milliseconds"),
    },
    "Queue and retries",
  ),
});

type Config = Static<typeof schema>;

/** The trace of a request in flight. */
interface Traced {
  readonly trace: Trace;
  readonly isSampled: boolean;
}

export default definePlugin({
  name: "otel-tracing",
  summary: "Propagates W3C trace context and exports spans to an OpenTelemetry collector",
  description: `The gateway continues a valid \`traceparent\` of the request, with its \`tracestate\`, and starts a trace otherwise. For each sampled
request it exports a server span and, when the request went to a target, a client span below it, as OTLP/HTTP in JSON, with
attributes of the semantic conventions for HTTP. The target receives a \`traceparent\` with the client span as parent.

Sampling follows the flag of the caller; of the traces that start here, \`sample_rate\` are sampled, decided by the trace id, so
that gateways in a chain agree. Spans do not include the query, because it may contain secrets.

Each worker queues spans in memory and sends them in batches. When the collector does not respond, or responds 429, 502, 503 or
504, the worker retries the batch after a delay; when the queue is full, it drops new spans, and logs how many. No request ever
waits.

Without an \`endpoint\` nothing is exported, and valid traces are propagated unchanged. With \`request-id\`, which also starts traces,
this plugin keeps its ids and decides about the sampling.`,
  group: "observability",
  order: 9950,
  phases: ["request", "log"],
  scopes: httpScopes,
  config: schema,
  example: { resource_attributes: { "deployment.environment.name": "test" }, sample_rate: 1 },
  onError: "open",
  ignoresPath: true,
  check: ({ endpoint, headers }) => [
    ...(endpoint !== null && URL.parse(endpoint)?.username
      ? [{ path: "endpoint", message: "must not contain a user name or password" }]
      : []),
    ...Object.entries(headers).flatMap(([name, value]) => {
      if (!isToken(name))
        return [{ path: `headers.${name}`, message: "is not a valid header name" }];
      const isText = typeof value === "string";
      return isText && !isFieldValue(value)
        ? [{ path: `headers.${name}`, message: "is not a valid header value" }]
        : [];
    }),
  ],
  create(own, kit) {
    const ids = new Ids();
    return own.endpoint === null ? propagator(own, ids) : tracer(own, ids, kit);
  },
});

/** Propagates and starts traces without exporting spans. */
function propagator({ sample_rate: rate }: Config, ids: Ids) {
  return {
    request(context: RequestContext) {
      if (parseTraceParent(context.header("traceparent")) !== null) return undefined;
      const { traceId } = rootOf(context, ids);
      setTrace(context, formatTraceParent(traceId, ids.span(), isChosen(traceId, rate)));
      return undefined;
    },
  };
}

function tracer(own: Config, ids: Ids, kit: PluginKit) {
  const { batch } = own;
  const exporter = new Exporter({
    url: endpointOf(own.endpoint ?? ""),
    headers: own.headers,
    resource: writeResource(own.resource_attributes),
    maxBatch: batch.max_size,
    maxDelayMs: batch.max_delay,
    maxQueue: batch.max_queue,
    maxRetryMs: batch.max_retry_time,
    timeoutMs: batch.timeout,
    callout: kit.callout,
    log: kit.log,
    lost: kit.dropped,
  });
  const key = exporter;
  return {
    request(context: RequestContext) {
      const traced = traceOf(context, ids, own.sample_rate);
      const { traceId, clientId } = traced.trace;
      context.memory.set(key, traced);
      setTrace(context, formatTraceParent(traceId, clientId, traced.isSampled));
      return undefined;
    },
    log(context: RequestContext) {
      // A request that was rejected earlier has not reached the `request` handler.
      const known = context.memory.get(key) as Traced | undefined;
      const traced = known ?? traceOf(context, ids, own.sample_rate);
      if (traced.isSampled && context.result !== null)
        exporter.add(writeSpans(context, context.result, traced.trace));
    },
    close: () => exporter.close(),
  };
}

function traceOf(context: RequestContext, ids: Ids, rate: number): Traced {
  const parent = parseTraceParent(context.header("traceparent"));
  const { traceId } = parent ?? rootOf(context, ids);
  return {
    isSampled: parent === null ? isChosen(traceId, rate) : (parent.flags & 1) === 1,
    trace: {
      traceId,
      parentId: parent?.spanId ?? "",
      serverId: ids.span(),
      clientId: ids.span(),
      traceState: parent === null ? "" : (context.header("tracestate") ?? "").slice(0, 512),
    },
  };
}

/** Another plugin may have started the trace of this request: keeps its trace id, without a parent span. */
function rootOf({ upstream }: RequestContext, ids: Ids): { readonly traceId: string } {
  return parseTraceParent(upstream.header("traceparent")) ?? { traceId: ids.trace() };
}

function setTrace(context: RequestContext, traceParent: string): void {
  const { upstream } = context;
  upstream.setHeader("traceparent", traceParent);
  // Section 3.3: invalid without a traceparent.
  if (upstream.header("tracestate") !== null && !parseTraceParent(context.header("traceparent")))
    upstream.removeHeader("tracestate");
}

/** By the last digits of the trace id, which are random in all formats. */
const isChosen = (traceId: string, rate: number) =>
  Number.parseInt(traceId.slice(-8), 16) < rate * 2 ** 32;

function endpointOf(text: string): string {
  const parsed = new URL(text);
  if (parsed.pathname === "/") parsed.pathname = "/v1/traces";
  return parsed.href;
}
