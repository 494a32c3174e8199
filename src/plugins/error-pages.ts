// error-pages: custom error pages in the media type that the client accepts.
import { STATUS_CODES } from "node:http";
import { type Static, Type as t } from "@sinclair/typebox";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, flag, integer, nullable } from "../pdk/fields.ts";
import { addVary, negotiate } from "../pdk/http.ts";
import { compileTemplate, type OwnVariables, templateProblem } from "../pdk/template.ts";

const MAX_PAGE = 262_144;

const form = (description: string) =>
  nullable(t.String({ minLength: 1, maxLength: MAX_PAGE, description }));

const schema = config({
  pages: t.Record(
    t.String({ pattern: "^[45](?:[0-9]{2}|xx)$" }),
    t.Object(
      {
        html: form("HTML page; variables are escaped"),
        json: form("JSON text; variables are allowed inside of strings, and are escaped"),
        text: form("Plain text"),
      },
      {
        additionalProperties: false,
        // Without it, missing members of a page would get no default.
        default: {},
        description: "The page in at least one form",
      },
    ),
    {
      additionalProperties: false,
      default: {},
      maxProperties: 50,
      description: "Pages by status such as `404`, or class such as `5xx`",
    },
  ),
  replace_upstream: flag(false, "Also replace error responses of targets"),
  auto_refresh_s: integer(5, {
    minimum: 0,
    maximum: 86_400,
    description:
      "Seconds after which a browser retries after 502, 503 and 504; a longer Retry-After wins; 0: never",
  }),
});

type Config = Static<typeof schema>;

/** Variables of the error response; the others come from the request. */
interface Failure {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly refresh: number;
}

type Form = "html" | "json" | "text";
type Page = (context: RequestContext, failure: Failure) => string;
type Pages = Readonly<Partial<Record<Form, Page>>>;

const typeOf: Readonly<Record<Form, string>> = {
  html: "text/html; charset=utf-8",
  json: "application/json",
  text: "text/plain; charset=utf-8",
};

/** The first one is for clients that accept anything. */
const OFFERS = [
  ["text/plain", "text"],
  ["text/html", "html"],
  ["application/json", "json"],
  ["application/problem+json", "json"],
] as const;

const escaperOf: Readonly<Record<Form, ((value: string) => string) | null>> = {
  html: (value) => Bun.escapeHTML(value),
  json: (value) => JSON.stringify(value).slice(1, -1),
  text: null,
};

const readers: Readonly<Record<string, (failure: Failure) => string>> = {
  status: ({ status }) => String(status),
  title: ({ title }) => title,
  detail: ({ detail }) => detail,
  refresh: ({ refresh }) => String(refresh),
};

const isKnownVariable: OwnVariables = (variable) =>
  Object.hasOwn(readers, variable) ? () => null : null;

/** Headers of a target's response that describe the replaced body. */
const OF_THE_BODY = [
  ...["content-encoding", "content-range", "content-language", "content-location"],
  ...["content-disposition", "content-length", "content-md5", "content-digest", "repr-digest"],
  ...["digest", "etag", "last-modified", "accept-ranges", "expires", "age"],
];

export default definePlugin({
  name: "error-pages",
  summary: "Replaces error responses with custom pages in HTML, JSON or text",
  description: `Custom pages replace the gateway's own error pages: for requests that plugins reject, targets that do not respond, and requests
that no route matches. With \`replace_upstream\` they also replace responses of targets with such a status. The page of an exact
status precedes that of its class. \`Accept\` selects HTML, JSON or text; when the page has no form that the client accepts, the
response stays as it is. Responses of the plugin respond and maintenance pages stay as they are.

Variables are those of all templates, \`\${status}\`, \`\${title}\`, \`\${detail}\` (a short reason without internals) and \`\${refresh}\`;
\`\${request.id}\` identifies the request in the logs. They are escaped for text and quoted attributes; do not use them in scripts
and styles. The status, Retry-After, WWW-Authenticate and the other headers of the response stay; the page is never stored
(\`Cache-Control: no-store\`).

After 502, 503 and 504 a browser repeats a GET request after \`auto_refresh_s\`: HTML responses have a \`Refresh\` header. The
gateway's own page follows this setting too.`,
  group: "content",
  order: 9600,
  phases: ["response"],
  scopes: httpScopes,
  config: schema,
  example: {
    pages: {
      "404": {
        html: "<!doctype html><title>Not here</title><h1>There is no ${request.path}</h1>",
        json: '{"error": "${title}", "request_id": "${request.id}"}',
      },
      "5xx": { text: "We are working on it (${request.id})." },
    },
    replace_upstream: true,
  },
  onError: "open",
  ignoresPath: true,
  check: ({ pages }) =>
    Object.entries(pages).flatMap(([status, forms]) => {
      const path = `pages.${status}`;
      if (Object.values(forms).every((source) => source === null))
        return [{ path, message: "must have at least one form" }];
      return (["html", "json", "text"] as const).flatMap((name) => {
        const message = pageProblem(name, forms[name]);
        return message === null ? [] : [{ path: `${path}.${name}`, message }];
      });
    }),
  create(own) {
    const pageOf = compilePages(own.pages);
    return {
      response(context, draft) {
        if (context.isGrpc) return;
        const { status, source, error } = draft;
        if (status < 400 || (source === "gateway" ? error === null : !isReplaced(own, draft)))
          return;
        const refresh = refreshAfter(own, context, draft);
        const pages = pageOf(status);
        if (pages === null || !show(pages, context, { draft, refresh }))
          adaptOwnPage(draft, refresh);
      },
    };
  },
});

const isReplaced = ({ replace_upstream: replaces }: Config, { source }: ResponseDraft) =>
  replaces && source === "upstream";

function pageProblem(name: Form, source: string | null): string | null {
  if (source === null) return null;
  const problem = templateProblem(source, isKnownVariable);
  if (problem !== null || name !== "json") return problem;
  try {
    // A digit is valid JSON inside of a string and, for a status, outside of one.
    JSON.parse(source.replaceAll(/\$\{[^{}]*\}/g, "1"));
    return null;
  } catch {
    return "must be JSON";
  }
}

function compilePages(pages: Config["pages"]): (status: number) => Pages | null {
  const compiled = new Map(
    Object.entries(pages).map(([status, forms]) => {
      const own: Partial<Record<Form, Page>> = {};
      for (const name of ["html", "json", "text"] as const) {
        const source = forms[name];
        if (source !== null) own[name] = compilePage(name, source);
      }
      return [status, own] as const;
    }),
  );
  return (status) =>
    compiled.get(String(status)) ?? compiled.get(`${Math.floor(status / 100)}xx`) ?? null;
}

function compilePage(name: Form, source: string): Page {
  let current: Failure | null = null;
  const variables: OwnVariables = (variable) => {
    const read = Object.hasOwn(readers, variable) ? readers[variable] : undefined;
    return read === undefined ? null : () => (current === null ? null : read(current));
  };
  const fill = compileTemplate(source, escaperOf[name], variables);
  return (context, failure) => {
    current = failure;
    const text = fill(context);
    current = null;
    return text;
  };
}

/** Only for temporary errors and safe methods. */
function refreshAfter(own: Config, { method }: RequestContext, { status, headers }: ResponseDraft) {
  const { auto_refresh_s: seconds } = own;
  const isSafe = method === "GET" || method === "HEAD";
  if (seconds === 0 || !isSafe || status < 502 || status > 504) return 0;
  const retryAfter = headers.get("retry-after") ?? "";
  return /^\d{1,5}$/.test(retryAfter) ? Math.max(seconds, Number(retryAfter)) : seconds;
}

const encoder = new TextEncoder();

/** False: the page has no form that the client accepts. */
function show(
  pages: Pages,
  context: RequestContext,
  { draft, refresh }: { readonly draft: ResponseDraft; readonly refresh: number },
): boolean {
  const offers = OFFERS.filter(([, name]) => pages[name] !== undefined);
  const wanted = negotiate(
    context.header("accept"),
    offers.map(([type]) => type),
  );
  const [type, name] = offers.find(([each]) => each === wanted) ?? [];
  const page = name === undefined ? undefined : pages[name];
  if (page === undefined || name === undefined) return false;
  const { headers, status, error } = draft;
  const title = STATUS_CODES[status] ?? (status < 500 ? "Request Failed" : "Server Error");
  const detail = error?.detail ?? "";
  const body = encoder.encode(page(context, { status, title, detail, refresh }));
  for (const field of OF_THE_BODY) headers.delete(field);
  headers.set("Content-Type", type === "application/problem+json" ? type : typeOf[name]);
  headers.set("Cache-Control", "no-store");
  addVary(headers, ["Accept"]);
  if (!headers.has("x-request-id")) headers.set("X-Request-Id", context.id);
  if (name === "html" && refresh > 0) headers.set("Refresh", String(refresh));
  else headers.delete("Refresh");
  // A HEAD response has no body, but the length of the page.
  if (context.method === "HEAD") headers.set("Content-Length", String(body.byteLength));
  draft.replaceBody(body);
  return true;
}

const decoder = new TextDecoder();
const META = /<meta http-equiv="refresh" content="\d+">\n/;

/** Replaces the refresh of the gateway's own page. */
function adaptOwnPage(draft: ResponseDraft, refresh: number): void {
  const { source, wholeBody, headers } = draft;
  if (source !== "gateway" || wholeBody === null) return;
  if (!/^text\/html/.test(headers.get("content-type") ?? "")) return;
  const page = decoder.decode(wholeBody);
  const next = page.replace(
    META,
    refresh === 0 ? "" : `<meta http-equiv="refresh" content="${refresh}">\n`,
  );
  if (next !== page) draft.replaceBody(encoder.encode(next));
}
