// mirror: sends a copy of requests elsewhere and forgets about it.
import { Type as t } from "@sinclair/typebox";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import {
  config,
  flag,
  integer,
  listOf,
  milliseconds,
  nullable,
  serviceReference,
  url,
} from "../pdk/fields.ts";
import { connectionOptions, GATEWAY_FIELDS, hyphenated, isToken } from "../pdk/http.ts";
import type { Counters, PluginKit } from "../pdk/kit.ts";
import { copied } from "./mirror/copied-body.ts";

const schema = config({
  service_id: nullable(
    serviceReference({ description: "Service that gets the copies, by id or name; or give url" }),
  ),
  url: nullable(
    url({ description: "Address that gets the copies: path and query are put behind it" }),
  ),
  percent: t.Number({
    default: 100,
    minimum: 0,
    maximum: 100,
    description: "Part of the requests that is copied",
  }),
  methods: listOf(
    t.String({ minLength: 1, maxLength: 32, description: "A method, in capital letters" }),
    { default: ["GET", "HEAD"], maxItems: 32, description: "Methods that are copied" },
  ),
  include_body: flag(
    false,
    "Also copy bodies; a copy with a body is sent once the body has passed",
  ),
  max_body: integer(1_048_576, {
    minimum: 1,
    maximum: 67_108_864,
    description: "Requests with a longer body are not copied",
  }),
  timeout: milliseconds(3000, "Milliseconds for the whole exchange"),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "mirror",
  summary: "Mirrors requests to another service and ignores the responses",
  description: `The copy equals the upstream request: with the changes of other plugins, the path rules of the route, and \`X-Mirrored: 1\`. The
gateway sends it after the request itself and discards its response; nothing that happens to the copy affects the client. A copy
has a body only with \`include_body\`, up to \`max_body\`.

With \`service_id\` the copy goes to a target of the service like any request: its load balancing, TLS, retries and health checks
apply. With \`url\` it goes to one address, with the path as the client sent it and all upstream headers, including cookies; a
response of more than 1 MiB counts as failed.

Several instances, in one scope or in several scopes of a request, each send a copy.

Each worker has at most 100 concurrent copies per instance and drops further ones. WebSockets are not mirrored; requests that a
response-cache serves are. The metric \`sluice_mirror_requests_total\` counts copies with a response (\`sent\`), without one
(\`failed\`) and \`dropped\` ones.`,
  group: "traffic",
  order: 4900,
  phases: ["request", "log"],
  scopes: httpScopes,
  allowsMultiple: true,
  config: schema,
  example: { url: "http://127.0.0.1:9999", percent: 10 },
  onError: "open",
  check: problemsOf,
  metrics: [
    {
      name: "sluice_mirror_requests",
      help: "Copies of requests: answered, not answered, or dropped because too many were under way.",
      type: "counter",
      read: ({ name }, counters) =>
        results.map((result) => ({
          labels: { plugin: name, result },
          value: counters.add(result, 0, FOREVER_MS).current,
        })),
    },
  ],
  create: (own, kit) => createHandlers(own, kit),
});

const results = ["sent", "failed", "dropped"] as const;
/** A window that no gateway sees the end of: what is counted in it is all there ever was. */
const FOREVER_MS = 4e12;
/** Copies of one instance that one worker has under way. */
const MOST_UNDER_WAY = 100;
/** More of an answer is not read. */
const MAX_ANSWER_BYTES = 1_048_576;

const UNCOPIED: ReadonlySet<string> = new Set(["CONNECT", "TRACE"]);

function problemsOf({ service_id, url: address, methods }: Config) {
  const problems: { path: string; message: string }[] = [];
  if ((service_id === null) === (address === null))
    problems.push({ path: "", message: "must have one of service_id and url" });
  for (const [at, method] of methods.entries())
    if (!isToken(method) || method !== method.toUpperCase() || UNCOPIED.has(method))
      problems.push({
        path: `methods[${at}]`,
        message: "must be a method that can be copied, in capitals",
      });
  return problems;
}

/** Sends a copy; true when it was answered. */
type Send = (context: RequestContext, body: Uint8Array | null) => Promise<boolean>;

function createHandlers(own: Config, kit: PluginKit): PluginHandlers {
  const { counters } = kit;
  const methods = new Set(own.methods);
  const send = own.service_id === null ? toAddress(own, kit) : toService(own, own.service_id);
  let underWay = 0;
  let isOpen = true;

  const run = async (context: RequestContext, body: Uint8Array | null) => {
    try {
      count(counters, (await send(context, body)) ? "sent" : "failed");
    } catch {
      count(counters, "failed");
    } finally {
      underWay--;
    }
  };
  /** After the present turn, in which the request itself goes on its way. */
  const start = (context: RequestContext, body: Uint8Array | null) =>
    void setTimeout(() => {
      if (isOpen) void run(context, body);
      else underWay--;
    }, 0);

  /** Gives up a copy whose body has not passed. */
  const place = {};
  const startWithBody = (context: RequestContext) => {
    let isPending = true;
    const done = (body: Uint8Array | null) => {
      if (!isPending) return;
      isPending = false;
      if (body === null) underWay--;
      else start(context, body);
    };
    context.memory.set(place, () => done(null));
    if (!context.passBody((stream) => copied(stream, own.max_body, done)))
      // It is there already.
      context.readBody(own.max_body).then(done, () => done(null));
  };

  return {
    request(context) {
      if (!methods.has(context.method) || context.header("upgrade") !== null) return;
      if (own.percent < 100 && Math.random() * 100 >= own.percent) return;
      if (underWay >= MOST_UNDER_WAY) {
        count(counters, "dropped");
        return;
      }
      if (!own.include_body || !context.hasBody) {
        underWay++;
        start(context, null);
      } else if (context.bodyLength <= own.max_body) {
        underWay++;
        startWithBody(context);
      }
    },
    log: (context) => (context.memory.get(place) as (() => void) | undefined)?.(),
    close() {
      isOpen = false;
    },
  };
}

const count = (counters: Counters, result: (typeof results)[number]) =>
  void counters.add(result, 1, FOREVER_MS);

const MARK = "X-Mirrored";

function toService({ timeout: timeoutMs }: Config, serviceId: string): Send {
  return async (context, body) => {
    if (context.serviceNamed(serviceId) === null) return false;
    const { source } = await context.refetch({
      ...{ method: context.method, timeoutMs },
      maxBytes: MAX_ANSWER_BYTES,
      prepare(upstream) {
        upstream.setService(serviceId);
        upstream.setHeader(MARK, "1");
        if (body !== null) upstream.setBody(body);
      },
    });
    return source === "upstream";
  };
}

/** Methods that a copy cannot have a body with. */
const BODILESS = new Set(["GET", "HEAD"]);

function toAddress({ url: address, timeout: timeoutMs }: Config, { callout }: PluginKit): Send {
  const base = (address ?? "").replace(/\/+$/, "");
  return async (context, body) => {
    const { upstream } = context;
    const query = upstream.query === "" ? "" : `?${upstream.query}`;
    await callout({
      url: `${base}${upstream.path}${query}`,
      method: upstream.method,
      headers: fieldsOf(context),
      body: BODILESS.has(upstream.method) ? null : body,
      ...{ timeoutMs, maxBytes: MAX_ANSWER_BYTES },
    });
    return true;
  };
}

/** What the gateway says of clients and of itself: from a client it is worth nothing, here as little as on the way to a target. */
const OF_GATEWAY = /^(?:x-forwarded-|forwarded$|client-cert|proxy$)/;

/** As they go upstream. */
function fieldsOf(context: RequestContext): Record<string, string> {
  const fields: Record<string, string> = {};
  const mark = MARK.toLowerCase();
  const named = new Set(connectionOptions(context.header("connection")));
  const { changed } = context.upstream;
  const own = new Set(changed);
  for (const name of [...Object.keys(context.headers), ...changed]) {
    if (GATEWAY_FIELDS.has(name) || OF_GATEWAY.test(name) || name === mark) continue;
    // With another spelling, a client could speak in the name of a plugin.
    if (!own.has(name) && (named.has(name) || name !== hyphenated(name))) continue;
    const value = context.upstream.header(name);
    if (value !== null) fields[name] = value;
  }
  fields["x-forwarded-for"] = context.clientAddress();
  fields["x-forwarded-host"] = context.clientHost;
  fields["x-forwarded-proto"] = context.scheme;
  fields[mark] = "1";
  return fields;
}
