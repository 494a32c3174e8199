// request-id: sets the request id for logs, targets and clients, and propagates W3C trace context.
import { randomBytes } from "node:crypto";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin } from "../pdk/definition.ts";
import { config, flag, headerName, oneOf } from "../pdk/fields.ts";
import { GATEWAY_FIELDS } from "../pdk/http.ts";

const schema = config({
  header: headerName({
    default: "X-Request-Id",
    description: "Header with the id, in requests and responses",
  }),
  generator: oneOf(["uuidv7", "uuidv4"], {
    default: "uuidv7",
    description: "Format of ids; uuidv7 sorts by time",
  }),
  trust_incoming: oneOf(["trusted_proxies", "always", "never"], {
    default: "trusted_proxies",
    description: "Peers whose ids are accepted",
  }),
  echo: flag(true, "Send the id to the client"),
  traceparent: oneOf(["create", "propagate", "off"], {
    default: "create",
    description:
      "create: start a trace without a valid traceparent; propagate: remove an invalid traceparent; off: ignore traceparent",
  }),
  trace_sampled: flag(
    true,
    "Mark new traces as sampled; without the mark, targets that follow it record nothing",
  ),
});

type Config = (typeof schema)["static"];

/** Ids appear in logs, pages and headers: only characters without special meaning. */
const ID = /^[\w.~+/=:@-]{1,128}$/;

/** W3C Trace Context, section 3.2: version ff and all zeros are invalid, later versions may be longer. */
const TRACE_PARENT =
  /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-.*)?$/;

const isTraceParent = (text: string) =>
  TRACE_PARENT.test(text) && (text.length === 55 || !text.startsWith("00"));

export default definePlugin({
  name: "request-id",
  summary: "Sets the request id for logs, targets and clients, and propagates W3C trace context",
  description: `The gateway gives every request an id, and sends it to targets and clients as \`X-Request-Id\` (\`settings.requests.ids\`). Where this
plugin runs, it replaces that: with another header name, other ids, or traces. It accepts the ids of proxies before the gateway,
by default only of those in \`settings.trusted_proxies\`, since any client could otherwise give two requests the same id. It
replaces ids that are longer than 128 characters or have anything but letters, digits and \`. _ ~ + / = : @ -\`.

A valid \`traceparent\` (W3C Trace Context) is propagated unchanged. A request without one starts a trace; a \`tracestate\` without a
valid \`traceparent\` is removed.`,
  group: "observability",
  order: 10_000,
  phases: ["pre_auth", "response"],
  scopes: ["global", "service", "route"],
  config: schema,
  example: { trust_incoming: "always" },
  onError: "open",
  ignoresPath: true,
  namesRequests: true,
  check: ({ header }) =>
    GATEWAY_FIELDS.has(header.toLowerCase())
      ? [{ path: "header", message: "is reserved for the gateway" }]
      : [],
  create(own) {
    const field = own.header.toLowerCase();
    const nameIt = namer(own, field);
    const trace = own.traceparent === "off" ? null : tracer(own);
    const { echo } = own;
    return {
      preAuth(context) {
        nameIt(context);
        context.upstream.setHeader(field, context.id);
        if (trace !== null) trace(context);
        return undefined;
      },
      ...(echo ? { response: (context, draft) => draft.setHeader(own.header, context.id) } : {}),
    };
  },
});

function namer({ trust_incoming: trust, generator }: Config, field: string) {
  const mayName = (context: RequestContext) =>
    trust === "always" || (trust === "trusted_proxies" && context.isFromTrustedProxy());
  return (context: RequestContext): void => {
    const given = trust === "never" ? null : context.header(field);
    if (given !== null && ID.test(given) && mayName(context)) context.setId(given);
    else if (generator === "uuidv4") context.setId(crypto.randomUUID());
  };
}

function tracer({ traceparent, trace_sampled: sampled }: Config) {
  const flags = sampled ? "01" : "00";
  const digits = randomDigits();
  return (context: RequestContext): void => {
    const given = context.header("traceparent");
    if (given !== null && isTraceParent(given)) return;
    const { upstream } = context;
    if (traceparent === "create") {
      upstream.setHeader("traceparent", `00-${digits(32)}-${digits(16)}-${flags}`);
    } else if (given !== null) upstream.removeHeader("traceparent");
    if (context.header("tracestate") !== null) upstream.removeHeader("tracestate");
  };
}

/** Random hexadecimal digits, generated in bulk: for each request they would cost more than everything else here. */
function randomDigits(): (count: number) => string {
  let pool = "";
  let at = 0;
  return (count) => {
    if (at + count > pool.length) {
      pool = randomBytes(4096).toString("hex");
      at = 0;
    }
    at += count;
    return pool.slice(at - count, at);
  };
}
