// Compiles conditions on requests: networks, paths, headers, consumers and times; knows no plugin.
import type { Condition } from "../model/condition.ts";
import { normalizeHost } from "../http/authority.ts";
import { isToken } from "../http/fields.ts";
import { canonicalPath, comparablePath, isAmbiguousPath } from "../http/request-target.ts";
import { cidrProblem, compileCidrs } from "../net/cidr.ts";
import type { RequestContext, StreamContext } from "./context.ts";

type Test = (context: RequestContext) => boolean;

/** What requests and stream connections have in common. */
type Arrival = Pick<
  RequestContext & StreamContext,
  "clientAddress" | "country" | "asn" | "startedAt"
>;
type ArrivalTest = (context: Arrival) => boolean;

/** Members of a condition that apply to stream connections. */
export const STREAM_MEMBERS: ReadonlySet<string> = new Set([
  "cidr",
  "country",
  "asn",
  "time",
  "not",
]);

/** Members that never match before authentication. */
const OF_CONSUMER = ["consumer", "group"] as const;

/** Whether the condition depends on the consumer. */
export function asksForConsumer(condition: Condition): boolean {
  const { not } = condition;
  return OF_CONSUMER.some(
    (member) => condition[member] !== undefined || (not !== undefined && not[member] !== undefined),
  );
}

/** Compiles a condition for which `conditionProblems` returns nothing. */
export function compileCondition(condition: Condition): Test {
  const { not, ...own } = condition;
  const tests = testsOf(own);
  if (not !== undefined) {
    const excluded = all(testsOf(not));
    tests.push((context) => !excluded(context));
  }
  return all(tests);
}

/** The same for stream connections: conditions on HTTP never match. */
export function compileStreamCondition(condition: Condition): (context: StreamContext) => boolean {
  const { not, ...own } = condition;
  const isOfHttp = (members: object) =>
    Object.entries(members).some(
      ([name, value]) => value !== undefined && !STREAM_MEMBERS.has(name),
    );
  if (isOfHttp(own)) return () => false;
  const tests = arrivalTestsOf(own);
  if (not !== undefined && !isOfHttp(not)) {
    const excluded = arrivalTestsOf(not);
    tests.push((context) => !excluded.every((test) => test(context)));
  }
  return (context) => tests.every((test) => test(context));
}

function all(tests: readonly Test[]): Test {
  const [only] = tests;
  if (tests.length === 1 && only !== undefined) return only;
  return (context) => {
    for (const test of tests) if (!test(context)) return false;
    return true;
  };
}

type Own = Omit<Condition, "not">;

/** Cheapest first. */
function testsOf(own: Own): Test[] {
  const tests: Test[] = [];
  const { method, host, path, ambiguous_path: isAmbiguous, tls_client: tlsClient } = own;
  const { consumer, group } = own;
  if (method !== undefined) {
    const wanted = new Set(method.map((each) => each.toUpperCase()));
    tests.push((context) => wanted.has(context.method));
  }
  if (host !== undefined) tests.push(hostTest(host));
  if (path !== undefined) tests.push(pathTest(path));
  if (isAmbiguous !== undefined)
    tests.push((context) => isAmbiguousPath(context.path) === isAmbiguous);
  if (tlsClient !== undefined)
    tests.push(({ tls }) => ((tls?.clientCertificate ?? null) !== null) === tlsClient);
  tests.push(
    ...valueTests(own.header, (context, name) => context.header(name.toLowerCase())),
    ...valueTests(own.query, (context, name) => context.queryValue(name)),
    ...valueTests(own.cookie, (context, name) => context.cookie(name)),
  );
  tests.push(...arrivalTestsOf(own));
  if (consumer !== undefined)
    tests.push((context) => {
      const { consumer: who, isAnonymous } = context;
      return (
        who !== null &&
        !isAnonymous &&
        (consumer.includes(who.username) || consumer.includes(who.id))
      );
    });
  if (group !== undefined) tests.push(({ groups }) => groups.some((each) => group.includes(each)));
  return tests;
}

function arrivalTestsOf({ cidr, country, asn, time }: Own): ArrivalTest[] {
  const tests: ArrivalTest[] = [];
  if (cidr !== undefined) {
    const contains = compileCidrs(cidr);
    tests.push((context) => contains(context.clientAddress()));
  }
  if (country !== undefined) {
    const wanted = new Set(country.map((each) => each.toUpperCase()));
    tests.push((context) => wanted.has(context.country() ?? ""));
  }
  if (asn !== undefined) tests.push((context) => asn.includes(context.asn() ?? -1));
  if (time !== undefined) tests.push(timeTest(time));
  return tests;
}

function hostTest(hosts: readonly string[]): Test {
  const exact = new Set<string>();
  const suffixes: string[] = [];
  for (const host of hosts)
    if (host.startsWith("*.")) suffixes.push(`.${normalizeHost(host.slice(2)) ?? host.slice(2)}`);
    else exact.add(normalizeHost(host) ?? host);
  return ({ host }) => exact.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
}

/** Compares paths as routes do: otherwise another spelling of a path would bypass a policy. */
function pathTest(paths: readonly string[]): Test {
  const tests = paths.map((path): ((comparable: string) => boolean) => {
    if (path.startsWith("~")) {
      const regex = new RegExp(path.slice(1));
      return (comparable) => regex.test(comparable);
    }
    if (path.startsWith("=")) {
      const wanted = comparableForm(path.slice(1));
      return (comparable) => comparable === wanted;
    }
    const prefix = comparableForm(path).replace(/\/$/, "");
    return (comparable) => comparable === prefix || comparable.startsWith(`${prefix}/`);
  });
  return (context) => {
    const comparable = comparablePath(context.path);
    return tests.some((test) => test(comparable));
  };
}

/** The path of a request for it; null: no request can have it. */
function requestedPath(path: string): string | null {
  const url = /[?#]/.test(path) ? null : URL.parse(`http://host${path}`);
  return url === null ? null : canonicalPath(url.pathname);
}

/** Of a path as written by people: requests have `/%C3%BCber` for `/über`. */
const comparableForm = (path: string): string => comparablePath(requestedPath(path) ?? path);

/** Rejects paths that can never match, because such a rule would deny no request. */
function pathProblem(path: string): string | null {
  if (path.includes("?")) return "must not have a query: use query";
  if (path.includes("#")) return "must not have a fragment";
  return requestedPath(path) === null
    ? "must be a path that a request can have: no dot segments, no malformed escapes"
    : null;
}

function valueTests(
  wanted: Own["header"],
  read: (context: RequestContext, name: string) => string | null,
): Test[] {
  return Object.entries(wanted ?? {}).map(([name, value]): Test => {
    if (value === null) return (context) => read(context, name) === null;
    if (value === "*") return (context) => read(context, name) !== null;
    if (!value.startsWith("~")) return (context) => read(context, name) === value;
    const regex = new RegExp(value.slice(1));
    return (context) => {
      const text = read(context, name);
      return text !== null && regex.test(text);
    };
  });
}

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

function timeTest(time: NonNullable<Own["time"]>): ArrivalTest {
  const { after, before, days, timezone = "UTC" } = time;
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: timezone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const isWithin = (clock: string): boolean => {
    const isLate = after === undefined || clock >= after;
    const isEarly = before === undefined || clock < before;
    // From 22:00 to 06:00: one of the two is enough.
    const isOverMidnight = after !== undefined && before !== undefined && before < after;
    return isOverMidnight ? isLate || isEarly : isLate && isEarly;
  };
  let minute = -1;
  let verdict = false;
  return ({ startedAt }) => {
    const now = Math.floor(startedAt / 60_000);
    if (now === minute) return verdict;
    minute = now;
    const parts = Object.fromEntries(
      format.formatToParts(now * 60_000).map(({ type, value }) => [type, value]),
    );
    const day = (parts["weekday"] ?? "").slice(0, 3).toLowerCase() as (typeof DAYS)[number];
    verdict =
      (days === undefined || days.includes(day)) &&
      isWithin(`${parts["hour"] ?? "00"}:${parts["minute"] ?? "00"}`);
    return verdict;
  };
}

export interface ConditionProblem {
  /** Inside the condition: `cidr[0]`. */
  readonly path: string;
  readonly message: string;
}

/** All problems of a condition beyond its schema. `regexProblem` checks regular expressions. */
export function conditionProblems(
  condition: Condition,
  regexProblem: (source: string) => string | null,
): ConditionProblem[] {
  const { not, ...own } = condition;
  return [
    ...ownProblems(own, regexProblem),
    ...(not === undefined ? [] : ownProblems(not, regexProblem)).map(({ path, message }) => ({
      path: `not.${path}`,
      message,
    })),
  ];
}

function ownProblems(
  own: Own,
  regexProblem: (source: string) => string | null,
): ConditionProblem[] {
  const found: ConditionProblem[] = [];
  const check = (path: string, problem: string | null) => {
    if (problem !== null) found.push({ path, message: problem });
  };
  for (const [at, text] of (own.cidr ?? []).entries()) check(`cidr[${at}]`, cidrProblem(text));
  for (const [at, text] of (own.path ?? []).entries())
    check(
      `path[${at}]`,
      text.startsWith("~")
        ? regexProblem(text.slice(1))
        : /^=?\//.test(text)
          ? pathProblem(text.replace(/^=/, ""))
          : 'must start with "/", "=/" or "~"',
    );
  for (const [at, text] of (own.host ?? []).entries())
    check(
      `host[${at}]`,
      normalizeHost(text.replace(/^\*\./, "")) === null
        ? "must be a host name such as app.example.com, or *.example.com"
        : null,
    );
  for (const [at, text] of (own.country ?? []).entries())
    check(`country[${at}]`, /^[A-Za-z]{2}$/.test(text) ? null : "must be two letters, such as DE");
  for (const member of ["header", "query", "cookie"] as const)
    for (const [name, value] of Object.entries(own[member] ?? {}))
      if (value?.startsWith("~") === true) check(`${member}.${name}`, regexProblem(value.slice(1)));
  for (const name of Object.keys(own.header ?? {}))
    check(`header.${name}`, isToken(name) ? null : "must be the name of a header field");
  const timezone = own.time?.timezone;
  if (timezone !== undefined) check("time.timezone", timezoneProblem(timezone));
  return found;
}

function timezoneProblem(timezone: string): string | null {
  try {
    new Intl.DateTimeFormat("en-GB", { timeZone: timezone });
    return null;
  } catch {
    return "must be a time zone such as Europe/Berlin";
  }
}
