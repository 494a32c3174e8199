// mirror: sends a copy of requests to another service and ignores the response.
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

const schema = config({
  service_id: nullable(
    serviceReference({
      description: "Service that receives the copies, by id or name; exclusive with url",
    }),
  ),
  url: nullable(url({ description: "URL that receives the copies; path and query are appended" })),
  percent: t.Number({
    default: 100,
    minimum: 0,
    maximum: 100,
    description: "Percentage of requests to copy",
  }),
  methods: listOf(
    t.String({ minLength: 1, maxLength: 32, description: "HTTP method in capitals" }),
    { default: ["GET", "HEAD"], maxItems: 32, description: "Methods of requests to copy" },
  ),
  include_body: flag(
    false,
    "Also copy bodies; such a copy is sent after the whole body was received",
  ),
  max_body: integer(1_048_576, {
    minimum: 1,
    maximum: 67_108_864,
    description: "Maximum body size in bytes; requests with longer bodies are not copied",
  }),
  timeout: milliseconds(3000, "Timeout of a copy in milliseconds"),
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

gRPC calls are mirrored when \`methods\` has POST and \`include_body\` is on: to a service, and after the client has sent its last
message. Longer streams than \`max_body\` are not, nor are copies to a URL.

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
      help: "Mirrored requests: with a response, without a response, or dropped because too many were in flight.",
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
/** A window longer than any uptime, for a total. */
const FOREVER_MS = 4e12;
/** Concurrent copies of one instance in one worker. */
const MOST_UNDER_WAY = 100;
/** Longer responses are not read. */
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
        message: "must be a supported method in capitals",
      });
  return problems;
}

/** Sends a copy; true when there is a response. */
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
  /** In the next turn of the event loop, after the request itself. */
  const start = (context: RequestContext, body: Uint8Array | null) =>
    void setTimeout(() => {
      if (isOpen) void run(context, body);
      else underWay--;
    }, 0);

  /** Cancels a copy whose body is incomplete. */
  const memoryKey = {};
  const startWithBody = (context: RequestContext) => {
    let isPending = true;
    const done = (body: Uint8Array | null) => {
      if (!isPending) return;
      isPending = false;
      if (body === null) underWay--;
      else start(context, body);
    };
    context.memory.set(memoryKey, () => done(null));
    if (!context.passBody((stream) => copied(stream, own.max_body, done)))
      // Another plugin has read it already.
      context.readBody(own.max_body).then(done, () => done(null));
  };

  return {
    request(context) {
      if (!methods.has(context.method) || context.header("upgrade") !== null) return;
      if (own.percent < 100 && Math.random() * 100 >= own.percent) return;
      // Callouts speak HTTP/1.1, and a call without its messages means nothing.
      if (context.isGrpc && (own.url !== null || !own.include_body)) return;
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
    log: (context) => (context.memory.get(memoryKey) as (() => void) | undefined)?.(),
    close() {
      isOpen = false;
    },
  };
}

/** Passes `source` through; `done` is called once, with the whole body, or null when it is longer or incomplete. */
function copied(
  source: ReadableStream<Uint8Array>,
  maxBytes: number,
  done: (body: Uint8Array | null) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let pieces: Uint8Array[] | null = [];
  let size = 0;
  const end = (isWhole: boolean) => {
    const all = pieces;
    if (all === null) return;
    pieces = null;
    done(isWhole ? Buffer.concat(all) : null);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done: isOver, value } = await reader.read();
          if (isOver) {
            end(true);
            controller.close();
            return;
          }
          size += value.byteLength;
          if (size > maxBytes) end(false);
          // The reader may transfer the buffer.
          else pieces?.push(value.slice());
          controller.enqueue(value);
        } catch (error) {
          end(false);
          throw error;
        }
      },
      cancel(reason) {
        end(false);
        return reader.cancel(reason);
      },
    },
    // Nothing is read before there is a reader.
    { highWaterMark: 0 },
  );
}

const count = (counters: Counters, result: (typeof results)[number]) =>
  void counters.add(result, 1, FOREVER_MS);

const MARK = "X-Mirrored";

function toService({ timeout: timeoutMs }: Config, serviceId: string): Send {
  return async (context, body) => {
    if (context.serviceNamed(serviceId) === null) return false;
    const { source } = await context.refetch({
      method: context.method,
      timeoutMs,
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

/** Methods whose copies have no body. */
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
      timeoutMs,
      maxBytes: MAX_ANSWER_BYTES,
    });
    return true;
  };
}

/** Headers that only the gateway sets; the client's are removed, as on the way to a target. */
const OF_GATEWAY = /^(?:x-forwarded-|forwarded$|client-cert|proxy$)/;

/** The upstream headers. */
function fieldsOf(context: RequestContext): Record<string, string> {
  const fields: Record<string, string> = {};
  const mark = MARK.toLowerCase();
  const named = new Set(connectionOptions(context.header("connection")));
  const { changed } = context.upstream;
  const own = new Set(changed);
  for (const name of [...Object.keys(context.headers), ...changed]) {
    if (GATEWAY_FIELDS.has(name) || OF_GATEWAY.test(name) || name === mark) continue;
    // With another spelling, a client could forge a plugin's header.
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
