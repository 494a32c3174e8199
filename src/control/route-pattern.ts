// Validates the hosts, paths and conditions of one route; knows no other route and nothing of the database.
import type { GrpcMatch, Route, ValueMatch } from "../model/route.ts";
import type { TextCheck } from "../model/object-rules.ts";
import type { PathMatch } from "../model/route-match.ts";
import { normalizeHost } from "../http/authority.ts";
import { isToken } from "../http/fields.ts";
import { canonicalPath, comparablePath } from "../http/request-target.ts";
import { matchedPaths } from "../snapshot/matched-paths.ts";
import { regexProblem } from "../snapshot/regex-safety.ts";

/** One error: a JSON path inside the route such as `hosts[0]`, and a message that follows it. */
export interface PatternProblem {
  readonly path: string;
  readonly message: string;
}

/**
 * All errors in the match conditions of a route. The caller checks networks (`client_cidrs`, `bypass_cidrs`), as for every
 * resource. Runs when a route is written.
 */
export function routePatternProblems(
  route: Route,
  regex: TextCheck = regexProblem,
): PatternProblem[] {
  return [
    ...hostListProblems(route.hosts),
    ...listProblems("paths", route.paths, {
      check: (path) => (path.type === "regex" ? regex(path.value) : pathProblem(path.value)),
      same: pathKey,
      at: ".value",
    }),
    ...listProblems("grpc_methods", route.grpc_methods, {
      check: grpcProblem,
      same: ({ service, method }) => `${service}/${method}`,
    }),
    ...listProblems("methods", route.methods, {
      check: (method) => (isToken(method) ? null : "must be a method such as GET"),
      same: (method) => method.toUpperCase(),
    }),
    ...valueProblems("headers", route.headers, regex),
    ...valueProblems("query", route.query, regex),
    ...valueProblems("cookies", route.cookies, regex),
    ...rewriteProblems(route, regex),
    ...sizeProblems(route),
  ];
}

/** Of the tree of paths that a worker has for each host: 2 µs and 200 bytes of every worker each. */
const MAX_NODES = 50_000;

/** A route of 1,000 hosts and 1,000 paths would hold every worker for three seconds, and take 200 MB of each. */
function sizeProblems(route: Route): PatternProblem[] {
  const hosts = Math.max(1, route.hosts.length);
  let segments = 0;
  for (const { type, value } of matchedPaths(route))
    if (type !== "regex") segments += value.split("/").length - 1;
  if (hosts * segments <= MAX_NODES) return [];
  const most = MAX_NODES.toLocaleString("en");
  return [
    {
      path: "paths",
      message: `have ${segments} segments, for each of ${hosts} hosts; the product may be at most ${most}: use several routes`,
    },
  ];
}

/** The same for the host names of a route or a listener. */
export const hostListProblems = (hosts: readonly string[]): PatternProblem[] =>
  listProblems("hosts", hosts, { check: hostProblem, same: hostKey });

interface ListRules<T> {
  check(item: T): string | null;
  /** Two items with one key are duplicates. */
  same(item: T): string;
  /** Path of a problem inside the item. */
  readonly at?: string;
}

function listProblems<T>(
  field: string,
  items: readonly T[],
  rules: ListRules<T>,
): PatternProblem[] {
  const problems: PatternProblem[] = [];
  const seen = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    const wrong = rules.check(item);
    if (wrong !== null) {
      problems.push({ path: `${field}[${index}]${rules.at ?? ""}`, message: wrong });
      continue;
    }
    const first = seen.get(rules.same(item));
    if (first === undefined) seen.set(rules.same(item), index);
    else problems.push({ path: `${field}[${index}]`, message: `duplicates ${field}[${first}]` });
  }
  return problems;
}

const HOST_RULE = "must be a host name such as app.example.com, or *.example.com";

function hostProblem(host: string): string | null {
  const isWildcard = host.startsWith("*.");
  const name = isWildcard ? host.slice(2) : host;
  if (/:\d*$/.test(name) && !name.endsWith("]") && normalizeHost(name) !== null) {
    return "must be a host name without a port";
  }
  const normal = normalizeHost(name);
  if (normal === null) return HOST_RULE;
  // An address has no subdomains.
  if (isWildcard && (/^\d+(?:\.\d+){3}$/.test(normal) || normal.startsWith("["))) return HOST_RULE;
  return null;
}

function hostKey(host: string): string {
  return host.startsWith("*.") ? `*.${normalizeHost(host.slice(2))}` : `${normalizeHost(host)}`;
}

function pathProblem(value: string): string | null {
  if (!value.startsWith("/")) return 'must start with "/"';
  if (value.includes("?")) return "must not have a query: use the field query";
  if (value.includes("#")) return "must not have a fragment";
  const canonical = canonicalPath(value);
  if (canonical === value) return separatorProblem(value);
  const resolved = canonicalPath(URL.parse(`http://host${value}`)?.pathname ?? "");
  return resolved === null
    ? "must be a valid request path: no dot segments, no malformed escapes"
    : `must be in canonical form: ${resolved}`;
}

/** A service name has no empty part: `.a`, `a..b` and `a.` are names of no service. */
function grpcProblem({ service, method }: GrpcMatch): string | null {
  if (service === "" && method === "")
    return "needs a service, a method or both: leave the list empty for all calls";
  return /^\.|\.\.|\.$/.test(service)
    ? "must have a service name such as helloworld.Greeter"
    : null;
}

/** The router removes or merges these in requests, so a route with them would match more than it shows. */
function separatorProblem(value: string): string | null {
  if (value.includes(";")) return "must not contain a `;` parameter: matching ignores those";
  if (!/\/\/|%2F|%5C/.test(value)) return null;
  return `must separate segments by one "/": ${comparablePath(value)}`;
}

function pathKey({ type, value }: PathMatch): string {
  if (type === "regex") return `regex ${value}`;
  const comparable = comparablePath(value);
  return `${type} ${type === "prefix" && comparable.endsWith("/") ? comparable.slice(0, -1) : comparable}`;
}

/** A name may repeat (a regex and another regex), a whole condition may not. */
function valueProblems(
  field: "headers" | "query" | "cookies",
  matches: readonly ValueMatch[],
  regex: TextCheck,
): PatternProblem[] {
  const named = field === "query" ? () => true : isToken;
  const nameOf = (name: string) => (field === "headers" ? name.toLowerCase() : name);
  const names = matches.flatMap(({ name }, index) =>
    named(name) ? [] : [{ path: `${field}[${index}].name`, message: nameRule(field) }],
  );
  return [
    ...names,
    ...listProblems(field, matches, {
      check: ({ op, value }) => (op === "regex" ? regex(value) : null),
      same: ({ name, op, value }) => JSON.stringify([nameOf(name), op, value]),
      at: ".value",
    }),
  ];
}

function nameRule(field: "headers" | "query" | "cookies"): string {
  return field === "headers" ? "must be a header name" : "must be a cookie name";
}

function rewriteProblems(route: Route, regex: TextCheck): PatternProblem[] {
  const { path_rewrite: rewrite } = route;
  const wrong = rewrite === null ? null : regex(rewrite.regex);
  const wrongPrefix = prefixRewriteProblem(route);
  return [
    ...(wrong === null ? [] : [{ path: "path_rewrite.regex", message: wrong }]),
    ...(wrongPrefix === null ? [] : [{ path: "prefix_rewrite", message: wrongPrefix }]),
  ];
}

function prefixRewriteProblem(route: Route): string | null {
  const { prefix_rewrite: replacement } = route;
  const paths = matchedPaths(route);
  if (replacement === null) return null;
  if (route.strip_path) return "cannot be combined with strip_path: both replace the prefix";
  if (paths.length > 0 && route.paths.every(({ type }) => type !== "prefix"))
    return "needs a path of the type prefix";
  if (/[?#]/.test(replacement)) return "must be a path without a query or fragment";
  return pathProblem(replacement);
}
