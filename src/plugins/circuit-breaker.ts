// circuit-breaker: stops sending requests to a service that fails too often.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject, reply } from "../pdk/response.ts";
import type { NamedObject, RequestContext, RequestResult } from "../pdk/context.ts";
import {
  definePlugin,
  httpScopes,
  type MetricInstance,
  type PluginHandlers,
} from "../pdk/definition.ts";
import { config, group, headerValue, integer, listOf, nullable } from "../pdk/fields.ts";
import { HOP_BY_HOP, isToken } from "../pdk/http.ts";
import type { PluginKit } from "../pdk/kit.ts";
import { Circuits, type RequestOutcome, type Pass, phaseOf } from "./circuit-breaker/circuit.ts";

const schema = config({
  error_ratio: t.Number({
    default: 0.5,
    exclusiveMinimum: 0,
    maximum: 1,
    description: "Share of failed requests in a window that opens the circuit",
  }),
  min_requests: integer(20, {
    minimum: 1,
    maximum: 1_000_000,
    description: "Minimum number of requests in a window for failure and latency shares to count",
  }),
  window: integer(10, {
    minimum: 1,
    maximum: 3600,
    description: "Length of the window in seconds",
  }),
  statuses: listOf(t.Integer({ minimum: 100, maximum: 599, description: "A status" }), {
    default: [500, 502, 503, 504],
    maxItems: 100,
    description:
      "Response statuses that count as failures; connection errors and timeouts always do",
  }),
  consecutive: integer(0, {
    minimum: 0,
    maximum: 1_000_000,
    description: "Consecutive failures that open the circuit; 0: off",
  }),
  latency_ms: nullable(
    t.Integer({
      minimum: 1,
      maximum: 3_600_000,
      description: "Latency in milliseconds above which a response is slow; null: off",
    }),
  ),
  latency_quantile: nullable(
    t.Number({
      exclusiveMinimum: 0,
      exclusiveMaximum: 1,
      description:
        "Share of requests that must not be slow: with 0.95 the circuit opens when more than one in twenty is; null: off",
    }),
  ),
  open_for: integer(10, {
    minimum: 1,
    maximum: 86_400,
    description: "Seconds that the circuit stays open; doubled after each failed probe, up to 300",
  }),
  half_open_requests: integer(5, {
    minimum: 1,
    maximum: 10_000,
    description: "Concurrent probe requests while half open",
  }),
  close_after: integer(3, {
    minimum: 1,
    maximum: 10_000,
    description: "Successful probe requests that close the circuit; a failed one opens it again",
  }),
  response: group(
    {
      status: integer(503, { minimum: 400, maximum: 599, description: "Status of the response" }),
      body: nullable(
        t.String({
          maxLength: 65_536,
          description: "Body of the response; null: the gateway's error page",
        }),
      ),
      headers: t.Record(
        t.String({ minLength: 1, maxLength: 256 }),
        headerValue({ description: "A value" }),
        { default: {}, description: "Additional headers, such as the Content-Type of the body" },
      ),
    },
    "Response while the circuit is open",
  ),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "circuit-breaker",
  summary: "Stops sending requests to a service while it fails too often",
  description: `Each service has a circuit, or each route when the instance's scope is a route; all workers share it. While it is **closed**,
requests pass and the gateway counts failures: responses with one of \`statuses\`, unreachable targets and timeouts. With retries,
the last attempt counts. Client errors and requests that never went to a target do not count. Too many failures **open** the
circuit: the gateway responds at once, with \`Retry-After\` and
\`Proxy-Status: sluice; error=destination_unavailable; details="circuit_open"\`. After \`open_for\` it is **half open**: a few
requests pass; when \`close_after\` of them succeed it closes, and the first failure opens it again for twice as long.

The window slides: the previous window counts in proportion to its overlap, as if its requests were evenly spread. \`latency_ms\`
and \`latency_quantile\` belong together and measure the time to the response head. When traffic-split sends requests to another
service, the circuit is still that of the route's service.

A response-cache in the same scope runs first: it serves stored responses while the circuit is open, and stale ones as far as its
\`stale_if_error\` allows.

The metric \`sluice_circuit_state\` is 0 for closed, 1 for half open and 2 for open circuits.`,
  group: "traffic",
  // Inside of the cache, which serves stored and stale responses while the circuit is open.
  order: 2400,
  phases: ["request", "log"],
  scopes: httpScopes,
  config: schema,
  example: { error_ratio: 0.5, min_requests: 20, open_for: 10 },
  onError: "open",
  ignoresPath: true,
  check: problemsOf,
  metrics: [
    {
      name: "sluice_circuit_state",
      help: "State of circuits: 0 closed, 1 half open, 2 open.",
      type: "gauge",
      read: (instance, counters) =>
        subjectsOf(instance).map(({ kind, of }) => ({
          labels: { plugin: instance.name, [kind]: of.name ?? of.id },
          value: values[phaseOf(counters, of.id)],
        })),
    },
  ],
  create: (own, kit) => createHandlers(own, kit),
});

const values = { closed: 0, half_open: 1, open: 2 } as const;

/** Most circuits of one instance in the metrics. */
const MOST_SHOWN = 1000;

function subjectsOf({ route, service, services }: MetricInstance): {
  readonly kind: "route" | "service";
  readonly of: NamedObject;
}[] {
  if (route !== null) return [{ kind: "route", of: route }];
  const all = service === null ? services.slice(0, MOST_SHOWN) : [service];
  return all.map((of) => ({ kind: "service", of }));
}

/** Headers of the open circuit's response that the gateway sets. */
const OWN_FIELDS: ReadonlySet<string> = new Set(["content-length", "retry-after", "proxy-status"]);

function problemsOf({ latency_ms, latency_quantile, response }: Config) {
  const problems: { path: string; message: string }[] = [];
  if ((latency_ms === null) !== (latency_quantile === null))
    problems.push({
      path: latency_ms === null ? "latency_ms" : "latency_quantile",
      message: "is required too: latency_ms and latency_quantile belong together",
    });
  for (const name of Object.keys(response.headers)) {
    const path = `response.headers.${name}`;
    if (!isToken(name)) problems.push({ path, message: "must be a valid header name" });
    else if (HOP_BY_HOP.has(name.toLowerCase()) || OWN_FIELDS.has(name.toLowerCase()))
      problems.push({ path, message: "is reserved for the gateway" });
  }
  return problems;
}

function createHandlers(own: Config, { counters, instance, log }: PluginKit): PluginHandlers {
  const isOfRoute = instance.scope === "route" || instance.scope === "consumer_route";
  const circuits = new Circuits(own, counters, (key, phase) =>
    log(phase === "opened" ? "warn" : "info", `a circuit has ${phase}`, {
      [isOfRoute ? "route" : "service"]: key,
    }),
  );
  const respond = responder(own);
  const isFailure = new Set(own.statuses);
  return {
    request(context): Outcome {
      const of = isOfRoute ? context.route : context.service;
      // Nothing to fail.
      if (of === null) return undefined;
      const pass = circuits.enter(of.id);
      if (typeof pass === "number") return respond(pass);
      context.memory.set(circuits, pass);
      return undefined;
    },
    log(context: RequestContext) {
      const pass = context.memory.get(circuits) as Pass | undefined;
      if (pass === undefined || context.result === null) return;
      context.memory.delete(circuits);
      circuits.ended(pass, outcomeOf(context.result, { isFailure, slowMs: own.latency_ms }));
    },
  };
}

/** Null: the result does not concern the service. */
function outcomeOf(
  { attempts, upstreamStatus, status, upstream, firstByteMs }: RequestResult,
  by: { readonly isFailure: ReadonlySet<number>; readonly slowMs: number | null },
): RequestOutcome | null {
  if (attempts === 0 || upstream === null) return null;
  // Without a response of a target, the status is the gateway's; below 500 the client caused the failure.
  if (upstreamStatus === null && status < 500) return null;
  const tookMs = (upstreamStatus === null ? upstream.endMs : (firstByteMs ?? 0)) - upstream.startMs;
  return {
    isFailed: upstreamStatus === null || by.isFailure.has(upstreamStatus),
    isSlow: by.slowMs !== null && tookMs > by.slowMs,
  };
}

/** The response, for the milliseconds until the next probe. */
function responder({ response }: Config): (leftMs: number) => Outcome {
  const { status, body } = response;
  const reason = "circuit.open";
  const given = new Headers({ "Cache-Control": "no-store" });
  for (const [name, value] of Object.entries(response.headers)) given.set(name, value);
  const fields = Object.fromEntries(given);
  const headersFor = (leftMs: number) => ({
    ...fields,
    "Retry-After": String(Math.max(1, Math.ceil(leftMs / 1000))),
    "Proxy-Status": 'sluice; error=destination_unavailable; details="circuit_open"',
  });
  if (body !== null)
    return (leftMs) => reply(status, reason, { headers: headersFor(leftMs), body });
  return (leftMs) =>
    reject(status, reason, {
      detail: "the service is temporarily unavailable",
      headers: headersFor(leftMs),
      token: "destination_unavailable",
    });
}
