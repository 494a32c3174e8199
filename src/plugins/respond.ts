// respond: responds instead of the service: a fixed page, maintenance, a mock, an injected fault.
import { Type as t } from "@sinclair/typebox";
import { FieldList, type Outcome, reject, reply, replyWith } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { hashToken, isSameHash } from "../pdk/crypto.ts";
import { definePlugin } from "../pdk/definition.ts";
import {
  cidr,
  config,
  flag,
  group,
  headerValue,
  integer,
  listOf,
  nullable,
  template,
} from "../pdk/fields.ts";
import { HOP_BY_HOP, isToken } from "../pdk/http.ts";
import { compileCidrs } from "../pdk/net.ts";
import { compileTemplate } from "../pdk/template.ts";
import { Delays } from "../pdk/delays.ts";

const MAX_BODY = 1_048_576;

const bypassValues = (what: string) =>
  t.Record(
    t.String({ minLength: 1, maxLength: 256 }),
    t.String({ minLength: 1, maxLength: 4096 }),
    { default: {}, description: `${what} by name: a text that must be equal, or "*" for any` },
  );

const schema = config({
  status: integer(503, { minimum: 200, maximum: 599, description: "Status of the response" }),
  headers: t.Record(
    t.String({ minLength: 1, maxLength: 256 }),
    headerValue({ description: "Value of the header" }),
    { default: {}, description: "Headers of the response" },
  ),
  body: nullable(
    t.String({
      maxLength: MAX_BODY,
      description: "Literal body; text/plain by default",
    }),
  ),
  template: nullable(
    template({
      maxLength: MAX_BODY,
      description:
        "Body with variables such as ${request.path}, which are escaped for HTML and JSON by Content-Type",
    }),
  ),
  json: t.Optional(t.Unknown({ description: "Body as a JSON value" })),
  retry_after: nullable(
    t.Integer({ minimum: 0, maximum: 31_536_000, description: "Retry-After in seconds" }),
  ),
  after_authentication: flag(
    false,
    "Respond after authentication, only to requests that the authentication plugins of the route allow; false: respond before it, to all clients",
  ),
  bypass: group(
    {
      cidr: listOf(cidr({ description: "Address or network" }), {
        description: "Clients in one of these networks",
      }),
      header: bypassValues("Headers"),
      cookie: bypassValues("Cookies"),
    },
    "Requests that reach the service: one match is enough",
  ),
  percent: t.Number({
    minimum: 0,
    maximum: 100,
    default: 100,
    description:
      "Percentage of requests to respond to, evenly spread; the others reach the service",
  }),
  delay_ms: integer(0, {
    minimum: 0,
    maximum: 600_000,
    description: "Delay of the response in milliseconds",
  }),
});

type Config = (typeof schema)["static"];

function check(own: Config) {
  const { headers, body, template: text, json } = own;
  const found: { path: string; message: string }[] = [];
  if ([body !== null, text !== null, json !== undefined].filter(Boolean).length > 1)
    found.push({ path: "", message: "must have at most one of body, template and json" });
  for (const name of Object.keys(headers))
    if (!isToken(name))
      found.push({ path: `headers.${name}`, message: "must be a valid header name" });
    else if (HOP_BY_HOP.has(name.toLowerCase()) || name.toLowerCase() === "content-length")
      found.push({ path: `headers.${name}`, message: "is reserved for the gateway" });
  return found;
}

export default definePlugin({
  name: "respond",
  summary: "Responds instead of the service: maintenance, a fixed page, a mock, an injected fault",
  description: `Without \`body\`, \`template\` and \`json\` a status from 400 on gets the gateway's error page, in a media type that the client accepts.

Requests that match \`bypass\` reach the service, to preview it. It is no access control: use an authentication plugin where it
matters.

By default it responds before authentication. With \`after_authentication\` it responds only to clients that the authentication
plugins allow; give it a low \`priority\` so that other plugins, such as acl, decide first.

To inject faults, set \`percent\` (5: every twentieth request of a worker) and \`delay_ms\`. A waiting client that disconnects frees
its resources. When 10000 clients of an instance wait, further ones get their response at once.`,
  group: "traffic",
  order: 9300,
  phases: ["pre_auth", "access"],
  scopes: ["global", "service", "route"],
  config: schema,
  example: { status: 503, json: { message: "back soon" }, retry_after: 600, percent: 50 },
  onError: "closed",
  ignoresPath: true,
  check,
  create(own) {
    const mayPass = bypassOf(own.bypass);
    const respond = responder(own);
    const isHit = sharer(own.percent);
    const delays = own.delay_ms === 0 ? null : new Delays();
    const run = (context: RequestContext): Outcome | Promise<Outcome> => {
      if (mayPass(context) || !isHit()) return undefined;
      if (delays === null) return respond(context);
      return delays.wait(own.delay_ms, context.signal).then(() => respond(context));
    };
    return {
      ...(own.after_authentication ? { access: run } : { preAuth: run }),
      close: () => delays?.end(),
    };
  },
});

/** Every n-th request instead of a random choice, so that the share is exact. */
function sharer(percent: number): () => boolean {
  if (percent === 100) return () => true;
  let sum = 0;
  return () => {
    sum += percent;
    // Tolerance for rounding errors of fractions such as 33.3.
    if (sum < 100 - 1e-9) return false;
    sum -= 100;
    return true;
  };
}

function bypassOf({ cidr: networks, header, cookie }: Config["bypass"]) {
  const contains = networks.length === 0 ? null : compileCidrs(networks);
  const hashed = (values: Readonly<Record<string, string>>) =>
    Object.entries(values).map(
      ([name, value]) => [name, value === "*" ? null : hashToken(value)] as const,
    );
  const headers = hashed(header).map(([name, hash]) => [name.toLowerCase(), hash] as const);
  const cookies = hashed(cookie);
  const isSame = (value: string | null, hash: string | null) =>
    value !== null && (hash === null || isSameHash(hashToken(value), hash));
  return (context: RequestContext): boolean =>
    contains?.(context.clientAddress()) === true ||
    headers.some(([name, hash]) => isSame(context.header(name), hash)) ||
    cookies.some(([name, hash]) => isSame(context.cookie(name), hash));
}

function responder(own: Config): (context: RequestContext) => Outcome {
  const { status, json } = own;
  const fields = new FieldList(own.headers);
  if (own.retry_after !== null) fields.set("Retry-After", String(own.retry_after));
  const hasNone = own.body === null && own.template === null && json === undefined;
  if (hasNone && status >= 400) {
    const headers = Object.fromEntries(fields.pairs);
    const detail = "the gateway responds instead of the service";
    return () => reject(status, "respond", { detail, headers });
  }
  if (!hasNone && !fields.has("content-type"))
    fields.set(
      "Content-Type",
      json === undefined ? "text/plain; charset=utf-8" : "application/json",
    );
  if (own.template === null) {
    const body = json === undefined ? own.body : JSON.stringify(json);
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : null;
    return () => replyWith(status, "respond", { fields, body: bytes });
  }
  const fill = compileTemplate(own.template, escaperOf(fields.get("content-type") ?? ""));
  return (context) => reply(status, "respond", { headers: fields.pairs, body: fill(context) });
}

/** Values from clients must not become markup or end a string. */
function escaperOf(type: string): (value: string) => string {
  if (/^(?:text\/html|image\/svg|[^;]*xml)/i.test(type)) return (value) => Bun.escapeHTML(value);
  if (/^[^;]*json/i.test(type)) return (value) => JSON.stringify(value).slice(1, -1);
  return (value) => value;
}
