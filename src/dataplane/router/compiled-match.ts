// The match conditions of one route, compiled once; knows nothing of other routes or of their order.
import type { Route } from "../../model/route.ts";
import { matchedPaths } from "../../snapshot/matched-paths.ts";
import { normalizeHost } from "../../http/authority.ts";
import { cookieValue } from "../../http/cookie.ts";
import { queryValue } from "../../http/query.ts";
import { comparablePath } from "../../http/request-target.ts";
import { compileCidrs } from "../../net/cidr.ts";

/** A request as the router sees it. Header and client address are functions because most routes do not use them. */
export interface RouteSubject {
  readonly method: string;
  /** In the form of `normalizeHost`. */
  readonly host: string;
  /** Canonical, see `readTarget`. */
  readonly path: string;
  /** Without `?`. */
  readonly query: string;
  readonly protocol: "http" | "https";
  readonly listenerId: string;
  /** Value of a header by its lower-case name, null when absent. */
  header(name: string): string | null;
  /** Normalized. */
  clientAddress(): string;
}

/** One condition beside host and path; `name` is the field of the route, such as `headers[0]`. */
export interface Condition {
  readonly name: string;
  holds(subject: RouteSubject): boolean;
}

/** A route's conditions, cheap to test. */
export interface CompiledMatch {
  readonly enabled: boolean;
  /** Normalized names; with `hostSuffixes` empty too, any host matches. */
  readonly exactHosts: readonly string[];
  /** `example.com` for `*.example.com`. */
  readonly hostSuffixes: readonly string[];
  /** Comparable forms (see `comparablePath`). */
  readonly exactPaths: readonly string[];
  /** Comparable forms without a trailing slash. */
  readonly pathPrefixes: readonly string[];
  readonly pathRegexes: readonly RegExp[];
  /** No path condition, or the prefix `/`, which is none. */
  readonly anyPath: boolean;
  /** Cheapest first. */
  readonly conditions: readonly Condition[];
}

/** Shared by all routes: a worker may hold a hundred thousand. */
const NONE: readonly never[] = Object.freeze([]);

/** Compiles a route, once per version. The route must have passed `routePatternProblems`. */
export function compileMatch(route: Route): CompiledMatch {
  const exactHosts: string[] = [];
  const hostSuffixes: string[] = [];
  for (const host of route.hosts) {
    const isWildcard = host.startsWith("*.");
    const name = isWildcard ? host.slice(2) : host;
    (isWildcard ? hostSuffixes : exactHosts).push(normalizeHost(name) ?? name.toLowerCase());
  }
  const exactPaths: string[] = [];
  const pathPrefixes: string[] = [];
  const pathRegexes: RegExp[] = [];
  const paths = matchedPaths(route);
  let anyPath = paths.length === 0;
  for (const { type, value } of paths) {
    if (type === "regex") pathRegexes.push(new RegExp(value));
    else if (type === "exact") exactPaths.push(comparablePath(value));
    else {
      const prefix = withoutTrailingSlash(comparablePath(value));
      if (prefix === "") anyPath = true;
      else pathPrefixes.push(prefix);
    }
  }
  return {
    enabled: route.enabled,
    exactHosts: unique(exactHosts),
    hostSuffixes: unique(hostSuffixes),
    exactPaths: unique(exactPaths),
    pathPrefixes: unique(pathPrefixes),
    pathRegexes: pathRegexes.length === 0 ? NONE : pathRegexes,
    anyPath,
    conditions: compileConditions(route),
  };
}

/**
 * Name of the first condition that the request fails (`enabled`, `hosts`, `paths`, `methods`, `headers[0]`, ...), null
 * when the route matches.
 */
export function firstMismatch(match: CompiledMatch, subject: RouteSubject): string | null {
  if (!match.enabled) return "enabled";
  if (!matchesHost(match, subject.host)) return "hosts";
  if (!matchesPath(match, comparablePath(subject.path))) return "paths";
  return firstFailedCondition(match.conditions, subject);
}

/** The last part of `firstMismatch`, for a candidate whose host and path are known to match. */
export function firstFailedCondition(
  conditions: readonly Condition[],
  subject: RouteSubject,
): string | null {
  for (let i = 0; i < conditions.length; i++) {
    const condition = conditions[i];
    if (condition !== undefined && !condition.holds(subject)) return condition.name;
  }
  return null;
}

function matchesHost(match: CompiledMatch, host: string): boolean {
  if (match.exactHosts.length === 0 && match.hostSuffixes.length === 0) return true;
  return (
    match.exactHosts.includes(host) ||
    match.hostSuffixes.some(
      (suffix) => host.length > suffix.length + 1 && host.endsWith(`.${suffix}`),
    )
  );
}

function matchesPath(match: CompiledMatch, path: string): boolean {
  return (
    match.anyPath ||
    match.exactPaths.includes(path) ||
    match.pathPrefixes.some(
      (prefix) =>
        path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === "/"),
    ) ||
    match.pathRegexes.some((regex) => regex.test(path))
  );
}

function compileConditions(route: Route): readonly Condition[] {
  const conditions: Condition[] = [];
  const { protocols, listener_ids: listeners, methods, client_cidrs: cidrs } = route;
  if (listeners.length > 0) {
    const ids = new Set(listeners);
    conditions.push({ name: "listener_ids", holds: (subject) => ids.has(subject.listenerId) });
  }
  if (unique(protocols).length === 1) {
    conditions.push({ name: "protocols", holds: (subject) => subject.protocol === protocols[0] });
  }
  if (methods.length > 0) {
    const wanted = new Set(methods.map((method) => method.toUpperCase()));
    conditions.push({ name: "methods", holds: (subject) => wanted.has(subject.method) });
  }
  if (cidrs.length > 0) {
    const holdsAddress = compileCidrs(cidrs);
    conditions.push({
      name: "client_cidrs",
      holds: (subject) => holdsAddress(subject.clientAddress()),
    });
  }
  conditions.push(
    ...valueConditions(
      "query",
      route.query,
      (name) => (subject) => queryValue(subject.query, name),
    ),
    ...valueConditions("headers", route.headers, (name) => {
      const lower = name.toLowerCase();
      return (subject) => subject.header(lower);
    }),
    ...valueConditions(
      "cookies",
      route.cookies,
      (name) => (subject) => cookieValue(subject.header("cookie"), name),
    ),
  );
  return conditions.length === 0 ? NONE : conditions;
}

type Reader = (subject: RouteSubject) => string | null;

function valueConditions(
  field: string,
  matches: Route["headers"],
  readerOf: (name: string) => Reader,
): Condition[] {
  return matches.map(({ name, op, value }, index) => {
    const holds = testOf(op, value);
    const read = readerOf(name);
    return { name: `${field}[${index}]`, holds: (subject) => holds(read(subject)) };
  });
}

function testOf(
  op: Route["headers"][number]["op"],
  wanted: string,
): (value: string | null) => boolean {
  switch (op) {
    case "equals":
      return (value) => value === wanted;
    case "present":
      return (value) => value !== null;
    case "absent":
      return (value) => value === null;
    case "regex": {
      const regex = new RegExp(wanted);
      return (value) => value !== null && regex.test(value);
    }
    default:
      return op satisfies never;
  }
}

function withoutTrailingSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

function unique(values: readonly string[]): readonly string[] {
  if (values.length === 0) return NONE;
  return values.length === 1 ? values : [...new Set(values)];
}
