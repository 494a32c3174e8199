// redirect: redirects clients to another URL.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject, reply } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin } from "../pdk/definition.ts";
import { config, flag, nullable, oneOf, regex, statusOf, template } from "../pdk/fields.ts";
import { canonicalPath } from "../pdk/http.ts";
import { addressBuilder, addressProblem, holdsPath } from "./redirect/address.ts";

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
