// redirect: redirects clients to another URL.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject, reply } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin } from "../pdk/definition.ts";
import { config, flag, nullable, oneOf, regex, statusOf, template } from "../pdk/fields.ts";
import { canonicalPath, replacePrefix } from "../pdk/http.ts";
import { compileTemplate } from "../pdk/template.ts";

const schema = config({
  to: nullable(
    template({
      description:
        'Destination: `https://new.example.com`, `/new`; may have variables, and $1 or $<name> for groups of the expression; null: the same URL with "scheme"',
    }),
  ),
  regex: nullable(
    regex({
      description: "Only paths that match; needs `to`, which is then the whole URL",
    }),
  ),
  prefix: nullable(
    t.String({
      minLength: 1,
      maxLength: 1024,
      description:
        "Only paths that begin with these segments, such as /old; `to` replaces them, and the rest follows",
    }),
  ),
  scheme: oneOf(["https", "http"], {
    default: "https",
    description: "Without `to`: scheme of the same URL",
  }),
  status: statusOf([301, 302, 303, 307, 308], {
    default: 308,
    description:
      "Status; 307 and 308 preserve method and body, browsers cache 301 and 308 without limit",
  }),
  keep_path: flag(
    true,
    "Append the path to `to`, unless it has a variable of the path or there is an expression",
  ),
  keep_query: flag(true, "Append the query, unless `to` has a variable of it"),
});

type Config = (typeof schema)["static"];

function check({ to, regex: source, prefix, keep_path: keepPath }: Config) {
  const found: { path: string; message: string }[] = [];
  const wrongPrefix = prefix === null ? null : prefixProblem(prefix, { to, source, keepPath });
  if (wrongPrefix !== null) found.push({ path: "prefix", message: wrongPrefix });
  if (to === null) {
    if (source !== null) found.push({ path: "to", message: "is required with an expression" });
    if (prefix !== null) found.push({ path: "to", message: "is required with a prefix" });
    return found;
  }
  const problem = addressProblem(to, { hasCaptures: source !== null });
  return problem === null ? found : [...found, { path: "to", message: problem }];
}

function prefixProblem(
  prefix: string,
  own: { readonly to: string | null; readonly source: string | null; readonly keepPath: boolean },
): string | null {
  if (own.source !== null) return "cannot be combined with an expression";
  if (!own.keepPath) return "needs keep_path, because the path after the prefix is kept";
  if (holdsPath(own.to ?? "")) return "cannot be combined with a variable of the path in `to`";
  return prefix.startsWith("/") && canonicalPath(prefix) === prefix && !/\/\/|[?#;]/.test(prefix)
    ? null
    : "must be a path such as /old";
}

export default definePlugin({
  name: "redirect",
  summary: "Redirects clients to another URL",
  description: `There are four forms: \`to\` (path and query are appended), \`prefix\` with \`to\` (replaces the beginning of the path: /old/a becomes
/new/a), \`regex\` with \`to\` (a new URL for matching paths), or none of them, for the same URL with another \`scheme\`.

Clients cannot make the gateway redirect to a host that you did not name: variables in the host are allowed only before a literal
\`.example.com\`, and a value that does not fit there gets 400. A request that is already at its destination goes to the service, so
that a rule for all hosts does not loop on the host it redirects to.

Browsers cache 301 and 308: test with 302 or 307 first.`,
  group: "traffic",
  order: 9400,
  phases: ["pre_auth"],
  scopes: ["global", "service", "route"],
  config: schema,
  example: { to: "https://www.example.com", status: 302 },
  onError: "closed",
  check,
  create(own) {
    const { status } = own;
    const address = own.to === null ? sameWith(own) : addressBuilder({ ...own, to: own.to });
    return {
      preAuth(context): Outcome {
        const location = address(context);
        if (location === null || isHere(location, context)) return undefined;
        if (location === "invalid")
          return reject(400, "redirect.invalid", {
            detail: "the request does not result in a valid URL",
          });
        return reply(status, "redirect", { headers: { Location: location } });
      },
    };
  },
});

/** Host and port as the client sent them, without the port when the scheme changes. */
function sameWith({ scheme, keep_path: keepPath, keep_query: keepQuery }: Config) {
  return (context: RequestContext): string | null => {
    if (context.scheme === scheme) return null;
    const host = context.clientHost.replace(/:\d+$/, "");
    const query = keepQuery && context.query !== "" ? `?${context.query}` : "";
    return `${scheme}://${host}${keepPath ? context.path : "/"}${query}`;
  };
}

function isHere(location: string, { scheme, clientHost, target }: RequestContext): boolean {
  return location === target || location === `${scheme}://${clientHost.toLowerCase()}${target}`;
}

/** Null: the request does not match; "invalid": client data is not valid in the host. */
type Address = (context: RequestContext) => string | "invalid" | null;

/** A placeholder: `${request.path}`, `$1`, `$<name>`. */
const PLACEHOLDER = /\$\{[^{}]*\}|\$\d{1,2}|\$<[A-Za-z_]\w*>/g;

/** Variables that clients cannot choose freely: routing has matched the host, the operator sets the environment. */
const isSafeInHost = (placeholder: string) =>
  placeholder === "${request.host}" || placeholder.startsWith("${env.");

/** Scheme, host and path, each with placeholders; the path begins with a literal slash. */
const ABSOLUTE =
  /^(https?|\$\{request\.scheme\}):\/\/((?:(?!\$\{request\.(?:path|target)\})(?:\$\{[^{}]*\}|\$<\w+>|[^/?#]))*)(.*)$/s;

const HOST = /^(?:(?:[a-z0-9_-]+\.)*[a-z0-9-]+\.?|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Null for a safe template without open redirect; otherwise its problem. */
function addressProblem(
  to: string,
  { hasCaptures }: { readonly hasCaptures: boolean },
): string | null {
  if (!hasCaptures && /\$(?:\d|<)/.test(to)) return "has $1 or $<name> without an expression";
  if (/[^\x21-\x7e]/.test(to)) return "must be ASCII without spaces; write others percent-encoded";
  if (/^\/(?![/\\])/.test(to)) return null;
  const [, , host = ""] = ABSOLUTE.exec(to) ?? [];
  if (host === "") return "must begin with https://, http:// or one /";
  if (/[@\\]/.test(host)) return "must not have @ or \\ in its host";
  const found = [...host.matchAll(PLACEHOLDER)].filter(([text]) => !isSafeInHost(text));
  const last = found.at(-1);
  if (last === undefined) return null;
  const tail = host.slice(last.index + last[0].length);
  return /^\.[a-z0-9-]/i.test(tail)
    ? null
    : "lets clients choose the host: a variable there must be followed by a literal such as .example.com";
}

/** Whether it has a variable of the path, so that the path is not appended. */
const holdsPath = (to: string): boolean => /\$\{(?:request\.(?:path|target)|path\.)/.test(to);

type Fill = (context: RequestContext, found: RegExpExecArray | null) => string;

/** Compiles a template for which `addressProblem` returns null. */
function addressBuilder({
  to,
  regex: source,
  prefix: start,
  keep_path,
  keep_query,
}: Config & { readonly to: string }): Address {
  const expression = source === null ? null : new RegExp(source);
  const [, scheme = "", hostText = "", restText = ""] = ABSOLUTE.exec(to) ?? [];
  const isAbsolute = scheme !== "";
  const prefix = compileTemplate(`${scheme}://`);
  const host = fillerOf(hostText);
  const rest = fillerOf(isAbsolute ? restText : to);
  const keepsPath = keep_path && source === null && !holdsPath(to);
  const keepsQuery = keep_query && !/\$\{request\.(?:query|target)/.test(to);
  return (context) => {
    const found = expression === null ? null : expression.exec(context.path);
    if (expression !== null && found === null) return null;
    let location = rest(context, found);
    if (start !== null) {
      const replaced = withPrefix(location, context.path, start);
      if (replaced === null) return null;
      location = replaced;
    } else if (keepsPath) location = withPath(location, context.path);
    if (keepsQuery) location = withQuery(location, context.query);
    // Browsers read `//evil.example` and `/\evil.example` as another host.
    if (!isAbsolute) return `/${encoded(location).replace(/^(?:[/\\]|%5C)+/i, "")}`;
    const name = host(context, found);
    if (!HOST.test(name)) return "invalid";
    // Values must not extend the host.
    const gap = location === "" || /^[/?#]/.test(location) ? "" : "/";
    return prefix(context) + name + gap + encoded(location);
  };
}

function fillerOf(text: string): Fill {
  const parts: Fill[] = [];
  let end = 0;
  for (const match of text.matchAll(/\$(?:(\d{1,2})|<([A-Za-z_]\w*)>)/g)) {
    const before = compileTemplate(text.slice(end, match.index));
    const [whole, number, name = ""] = match;
    parts.push((context) => before(context));
    parts.push((_, found) =>
      number === undefined ? (found?.groups?.[name] ?? "") : (found?.[Number(number)] ?? ""),
    );
    end = match.index + whole.length;
  }
  const last = compileTemplate(text.slice(end));
  parts.push((context) => last(context));
  return (context, found) => parts.map((part) => part(context, found)).join("");
}

/** Inserts it before a query or fragment, with one slash between. */
function withPath(location: string, path: string): string {
  const [, before = "", after = ""] = /^([^?#]*)(.*)$/s.exec(location) ?? [];
  return before.replace(/\/$/, "") + path + after;
}

/** The path with its prefix replaced by this location; null when it does not match. */
function withPrefix(location: string, path: string, prefix: string): string | null {
  const [, before = "", after = ""] = /^([^?#]*)(.*)$/s.exec(location) ?? [];
  const replaced = replacePrefix(path, prefix, before);
  return replaced === null ? null : replaced + after;
}

function withQuery(location: string, query: string): string {
  if (query === "") return location;
  const [, before = "", fragment = ""] = /^([^#]*)(.*)$/s.exec(location) ?? [];
  return `${before}${before.includes("?") ? "&" : "?"}${query}${fragment}`;
}

/** Characters that are not allowed in a URL: they would end the header or be ambiguous. */
const encoded = (text: string) =>
  text
    .toWellFormed()
    .replace(/[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]/gu, encodeURIComponent);
