// circuit-breaker: leaves a service alone for a while when it fails too often.
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
import { Circuits, type Experience, type Pass, phaseOf } from "./circuit-breaker/circuit.ts";

const schema = config({
  error_ratio: t.Number({
    default: 0.5,
    exclusiveMinimum: 0,
    maximum: 1,
    description: "Part of the requests of a window that must fail for the circuit to open",
  }),
  min_requests: integer(20, {
    minimum: 1,
    maximum: 1_000_000,
    description: "With fewer requests in a window, their parts say nothing",
  }),
  window: integer(10, { minimum: 1, maximum: 3600, description: "Seconds that are looked back" }),
  statuses: listOf(t.Integer({ minimum: 100, maximum: 599, description: "A status" }), {
    default: [500, 502, 503, 504],
    maxItems: 100,
    description:
      "Answers of targets that are failures; a target that cannot be reached or does not answer in time always is one",
  }),
  consecutive: integer(0, {
    minimum: 0,
    maximum: 1_000_000,
    description: "So many failures in a row open the circuit too; 0: they do not",
  }),
  latency_ms: nullable(
    t.Integer({
      minimum: 1,
      maximum: 3_600_000,
      description: "A target that takes longer than so many milliseconds is slow; null: off",
    }),
  ),
  latency_quantile: nullable(
    t.Number({
      exclusiveMinimum: 0,
      exclusiveMaximum: 1,
      description:
        "Part of the requests that must not be slow: with 0.95 the circuit opens when more than one in twenty is; null: off",
    }),
  ),
  open_for: integer(10, {
    minimum: 1,
    maximum: 86_400,
    description: "Seconds until it is tried again; twice as long each time that fails, up to 300",
  }),
  half_open_requests: integer(5, {
    minimum: 1,
    maximum: 10_000,
    description: "How many requests may be under way at the same time to try whether it works",
  }),
  close_after: integer(3, {
    minimum: 1,
    maximum: 10_000,
    description: "So many of them must succeed, and none fail, for the circuit to close",
  }),
  response: group(
    {
      status: integer(503, { minimum: 400, maximum: 599, description: "Status of the answer" }),
      body: nullable(
        t.String({ maxLength: 65_536, description: "The answer; null: the gateway's error page" }),
      ),
      headers: t.Record(
        t.String({ minLength: 1, maxLength: 256 }),
        headerValue({ description: "A value" }),
        { default: {}, description: "More header fields, such as the Content-Type of the body" },
      ),
    },
    "What clients get while the circuit is open",
  ),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "circuit-breaker",
  summary: "Leaves a service alone for a while when it fails too often",
  description: `Each service has a circuit, or each route when the instance is put on a route; all workers share it. While it is **closed**,
requests pass and what becomes of them is counted: answers with one of \`statuses\`, targets that cannot be reached or
do not answer in time. With retries, the last attempt counts. What clients do wrong, and what never went to a target, does not.
Too many failures **open** it: requests are answered at once, with \`Retry-After\` and
\`Proxy-Status: sluice; error=destination_unavailable; details="circuit_open"\`. After \`open_for\` it is **half open**: a few
requests pass; when \`close_after\` of them succeed it closes, and the first that fails opens it again for twice as long.

The window slides: of the one before counts the part that is less than a window ago, as if its requests had come evenly.
\`latency_ms\` and \`latency_quantile\` belong together and look at the time to the head of an answer. Where traffic-split
sends requests elsewhere, the circuit is still that of the route's service.

A response-cache in the same place is asked first: what it has is given while the circuit is open too, also what is too old where its
\`stale_if_error\` allows that.

The metric \`sluice_circuit_state\` is 0 for closed, 1 for half open and 2 for open circuits.`,
  group: "traffic",
  // Behind the cache: what it answers needs no service, and what it would do for a service that fails it does for an open circuit.
  order: 2400,
  phases: ["request", "log"],
  scopes: httpScopes,
  config: schema,
  example: { error_ratio: 0.5, min_requests: 20, open_for: 10 },
  onError: "open",
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

/** Circuits that are shown for one instance. */
const MOST_SHOWN = 1000;

function subjectsOf({ route, service, services }: MetricInstance): {
  readonly kind: "route" | "service";
  readonly of: NamedObject;
}[] {
  if (route !== null) return [{ kind: "route", of: route }];
  const all = service === null ? services.slice(0, MOST_SHOWN) : [service];
  return all.map((of) => ({ kind: "service", of }));
}

/** Of the answer while a circuit is open: what is told of it, and the length of the body. */
const OWN_FIELDS: ReadonlySet<string> = new Set(["content-length", "retry-after", "proxy-status"]);

function problemsOf({ latency_ms, latency_quantile, response }: Config) {
  const problems: { path: string; message: string }[] = [];
  if ((latency_ms === null) !== (latency_quantile === null))
    problems.push({
      path: latency_ms === null ? "latency_ms" : "latency_quantile",
      message: "must be given too: latency_ms and latency_quantile belong together",
    });
  for (const name of Object.keys(response.headers)) {
    const path = `response.headers.${name}`;
    if (!isToken(name)) problems.push({ path, message: "must be the name of a header field" });
    else if (HOP_BY_HOP.has(name.toLowerCase()) || OWN_FIELDS.has(name.toLowerCase()))
      problems.push({ path, message: "belongs to the gateway" });
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
  const answer = answerOf(own);
  const isFailure = new Set(own.statuses);
  return {
    request(context): Outcome {
      const of = isOfRoute ? context.route : context.service;
      // Nothing to fail.
      if (of === null) return undefined;
      const pass = circuits.enter(of.id);
      if (typeof pass === "number") return answer(pass);
      context.memory.set(circuits, pass);
      return undefined;
    },
    log(context: RequestContext) {
      const pass = context.memory.get(circuits) as Pass | undefined;
      if (pass === undefined || context.result === null) return;
      context.memory.delete(circuits);
      circuits.ended(pass, experienceOf(context.result, { isFailure, slowMs: own.latency_ms }));
    },
  };
}

/** Null: it says nothing about the service. */
function experienceOf(
  { attempts, upstreamStatus, status, upstream, firstByteMs }: RequestResult,
  by: { readonly isFailure: ReadonlySet<number>; readonly slowMs: number | null },
): Experience | null {
  if (attempts === 0 || upstream === null) return null;
  // Without an answer of a target it is the gateway that says what went wrong; below 500 it was the client.
  if (upstreamStatus === null && status < 500) return null;
  const tookMs = (upstreamStatus === null ? upstream.endMs : (firstByteMs ?? 0)) - upstream.startMs;
  return {
    isFailed: upstreamStatus === null || by.isFailure.has(upstreamStatus),
    isSlow: by.slowMs !== null && tookMs > by.slowMs,
  };
}

/** The answer by the milliseconds that it is still open. */
function answerOf({ response }: Config): (leftMs: number) => Outcome {
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
      detail: "the service does not work at the moment",
      headers: headersFor(leftMs),
      token: "destination_unavailable",
    });
}
