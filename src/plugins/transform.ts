// transform: changes requests to the target and responses to the client.
import { type Outcome, reject } from "../pdk/response.ts";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { compileTemplate } from "../pdk/template.ts";
import { canChangeBody, changedBytes, forgetBytes, WholeBody } from "./transform/response-body.ts";
import { compileResponseHeaders, compileQuery, compileRequestHeaders } from "./transform/fields.ts";
import { compileJsonChanges, parseJson } from "./transform/json-body.ts";
import {
  bodyEscape,
  compileReplacement,
  isJson,
  pathEscape,
  type Replacement,
} from "./transform/replacement.ts";
import {
  type Config,
  hasJsonChanges,
  MAX_BODY_BYTES,
  problemsOf,
  schema,
} from "./transform/settings.ts";

export default definePlugin({
  name: "transform",
  summary: "Changes requests to the target and responses to the client",
  description: `Texts may have variables such as \`\${request.header.x}\`, \`\${consumer.username}\`, \`\${path.1}\` and \`\${env.SLUICE_ENV_REGION}\`. Values
from clients are escaped for their context: in headers and paths invalid characters are percent-encoded, in JSON, HTML and forms
the syntax is escaped. When a change would make the path or the host invalid, the gateway responds 400.

The gateway reads JSON request bodies of up to 1 MiB; longer ones get 413. Compressed bodies, and bodies that claim to be JSON and
are not, stay unchanged.

It changes response bodies of up to 1 MiB; longer ones stay unchanged, with the reason \`transform.too_large\` in the request log.
So do compressed bodies, partial responses, event streams, and texts that are not UTF-8. To avoid these, the gateway requests
uncompressed, complete responses while a change of bodies is set (\`Accept-Encoding: identity\`, no \`Range\`); compress them with the
plugin compress. A changed body gets its own length, and its ETag becomes weak. \`body_replace\` applies to text, JSON, XML,
JavaScript and forms.

Messages of gRPC calls are never changed, their headers are.

The gateway's error pages are not changed: use error-pages. Several instances in one scope all run, the oldest first.`,
  group: "content",
  order: 4000,
  phases: ["request", "response", "body"],
  scopes: httpScopes,
  allowsMultiple: true,
  config: schema,
  example: {
    request: {
      path_rewrite: { regex: "^/api/v1/", to: "/" },
      headers: { set: { "X-Tenant": "${path.1}" }, remove: ["X-Debug"] },
    },
    response: {
      headers: { remove: ["X-Internal"] },
      body_json: { remove: ["debug"], set: { "meta.served_to": "${consumer.username}" } },
    },
  },
  onError: "closed",
  check: problemsOf,
  create(own) {
    const request = requestHandler(own);
    const response = responseHandler(own.response);
    return {
      ...(request === null ? {} : { request }),
      ...(response === null ? {} : { response }),
    };
  },
});

type RequestChange = (context: RequestContext) => void;

function requestHandler({
  request,
  response,
}: Config): NonNullable<PluginHandlers["request"]> | null {
  const changes = headChanges(request);
  if (changesBody(response)) changes.push(askForWhole);
  const body = requestBodyChange(request);
  if (changes.length === 0 && body === null) return null;
  return (context): Outcome | Promise<Outcome> => {
    try {
      for (const change of changes) change(context);
    } catch (error) {
      if (error instanceof TypeError) return unusable();
      throw error;
    }
    // Messages are not read.
    return body === null || context.isGrpc ? undefined : body(context);
  };
}

/** Values of the client made the result invalid. */
const unusable = () =>
  reject(400, "transform.unusable", { detail: "the request cannot be forwarded in this form" });

/** Compressed and partial bodies cannot be changed. */
const askForWhole: RequestChange = ({ isGrpc, upstream }) => {
  if (isGrpc) return;
  upstream.setHeader("Accept-Encoding", "identity");
  upstream.removeHeader("range");
  upstream.removeHeader("if-range");
};

function headChanges(own: Config["request"]): RequestChange[] {
  const changes: RequestChange[] = [];
  const { method, path_rewrite: rewrite } = own;
  if (method !== null) changes.push(({ upstream }) => upstream.setMethod(method));
  if (rewrite !== null) {
    const expression = new RegExp(rewrite.regex);
    const to = compileReplacement(rewrite.to, pathEscape);
    changes.push((context) => {
      const { upstream } = context;
      const next = replaced(upstream.path, expression, { to, context });
      if (next !== upstream.path) upstream.setPath(next);
    });
  }
  if (own.host !== null) {
    const host = compileTemplate(own.host);
    changes.push((context) => context.upstream.setHost(host(context)));
  }
  const headers = compileRequestHeaders(own.headers);
  if (headers !== null) changes.push((context) => headers(context.upstream, context));
  const query = compileQuery(own.query);
  if (query !== null)
    changes.push((context) => {
      const { upstream } = context;
      upstream.setWholeQuery(query(upstream.query, context));
    });
  return changes;
}

const replaced = (
  text: string,
  expression: RegExp,
  by: { readonly to: Replacement; readonly context: RequestContext },
) => text.replace(expression, (...found: unknown[]) => by.to(by.context, found));

const encoder = new TextEncoder();

/** Methods whose body has no meaning. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

function requestBodyChange(
  own: Config["request"],
): ((context: RequestContext) => Outcome | Promise<Outcome>) | null {
  const { body_template: source } = own;
  if (source !== null) {
    const template = byType((escaped) => compileTemplate(source, escaped));
    return (context) => {
      const { upstream } = context;
      if (BODILESS.has(upstream.method)) return undefined;
      const type = upstream.header("content-type") ?? "";
      upstream.setBody(encoder.encode(template(type)(context)));
      upstream.removeHeader("content-encoding");
      return undefined;
    };
  }
  const change = compileJsonChanges(own.body_json);
  if (change === null) return null;
  return (context) => {
    const { upstream } = context;
    const coding = context.header("content-encoding") ?? "identity";
    const isPlain = coding.trim().toLowerCase() === "identity";
    if (!context.hasBody || !isPlain || !isJson(context.header("content-type") ?? ""))
      return undefined;
    return context.readBody(MAX_BODY_BYTES).then((bytes) => {
      if (bytes === null)
        return reject(413, "transform.too_large", { detail: "the request body is too large" });
      const next = changedBytes(bytes, (text) => changedJson(text, (all) => change(all, context)));
      if (next === bytes) context.note("transform.unreadable");
      else upstream.setBody(next);
      return undefined;
    });
  };
}

/** Null: no JSON. */
function changedJson(text: string, change: (document: unknown) => unknown): string | null {
  try {
    return JSON.stringify(change(parseJson(text)));
  } catch {
    return null;
  }
}

/** One variant per kind of escaping, created at first use. */
function byType<T>(make: (escaped: ReturnType<typeof bodyEscape>) => T): (type: string) => T {
  const made = new Map<string, T>();
  return (type) => {
    const kind = isJson(type)
      ? "json"
      : (/^(?:text\/html|[^;]*xml|[^;]*urlencoded)/i.exec(type)?.[0] ?? "");
    const family = /xml$/i.test(kind) ? "xml" : kind.toLowerCase();
    const known = made.get(family);
    if (known !== undefined) return known;
    const next = make(bodyEscape(type));
    made.set(family, next);
    return next;
  };
}

const changesBody = ({ body_json, body_replace }: Config["response"]) =>
  hasJsonChanges(body_json) || body_replace.length > 0;

function responseHandler(own: Config["response"]): NonNullable<PluginHandlers["response"]> | null {
  const headers = compileResponseHeaders(own.headers);
  const trailers = compileResponseHeaders(own.trailers);
  const statuses = new Map(Object.entries(own.status_map));
  const body = changesBody(own) ? answerBodyChange(own) : null;
  if (headers === null && trailers === null && statuses.size === 0 && body === null) return null;
  return (context, draft) => {
    if (draft.source === "gateway") {
      if (own.gateway_responses) headers?.(draft.headers, context);
      return;
    }
    if (!context.isGrpc) body?.(context, draft);
    headers?.(draft.headers, context);
    if (trailers !== null) draft.changeTrailers((fields) => trailers(fields, context));
    if (statuses.size === 0) return;
    const { status } = draft;
    const next = statuses.get(String(status)) ?? statuses.get(`${Math.floor(status / 100)}xx`);
    if (next !== undefined) draft.status = next;
  };
}

/** Media types of text. */
const isText = (type: string) =>
  isJson(type) || /^(?:text\/|[^;]*(?:xml|javascript|ecmascript|urlencoded))/i.test(type);

function answerBodyChange(own: Config["response"]) {
  const change = compileJsonChanges(own.body_json);
  const replacements = own.body_replace.map(({ regex, with: to }) => ({
    expression: new RegExp(regex, "g"),
    to: byType((escaped) => compileReplacement(to, escaped)),
  }));
  return (context: RequestContext, draft: ResponseDraft): void => {
    const { headers, bodyLength } = draft;
    const type = headers.get("content-type") ?? "";
    const isForJson = change !== null && isJson(type);
    if (!isForJson && !(replacements.length > 0 && isText(type))) return;
    if (!canChangeBody(draft)) return;
    const tooLong = () => context.note("transform.too_large");
    if (bodyLength !== null && bodyLength > MAX_BODY_BYTES) {
      tooLong();
      return;
    }
    forgetBytes(headers);
    if (!draft.hasBody) return;
    const changeText = (text: string) => {
      let next = isForJson ? changedJson(text, (all) => change(all, context)) : null;
      for (const { expression, to } of replacements)
        next = replaced(next ?? text, expression, { to: to(type), context });
      return next;
    };
    draft.transformBody(new WholeBody(changeText, tooLong));
  };
}
