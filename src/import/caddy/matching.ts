// Converts Caddy's matchers to upper and lower bounds of the requests that they match; knows no handler and no route.
import { isIPv6 } from "node:net";
import { normalizeHost } from "../../http/authority.ts";
import { cidrProblem } from "../../net/cidr.ts";
import { regexProblem } from "../../snapshot/regex-safety.ts";
import { caseless, escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import { type PathBounds, pathBounds, pathExpression, type Stripped } from "./paths.ts";
import {
  always,
  anything,
  type Bounds,
  both,
  exactly,
  negated,
  never,
  unknown,
  type ValueTerm,
} from "./terms.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** The request as Caddy's matchers see it, which earlier handlers may have changed. */
export interface View {
  readonly path: "sent" | "unknown" | Stripped;
  /** Path patterns, one of which each request has matched; empty: unknown. */
  readonly patterns: readonly string[];
  /** Names, in lower case, of headers that earlier handlers changed; `*`: any. */
  readonly changedFields: readonly string[];
  readonly isMethodChanged: boolean;
  readonly isQueryChanged: boolean;
  /** Whether a trusted proxy sets the client address. */
  readonly hidesAddresses: boolean;
}

export interface Match {
  readonly bounds: Bounds;
  readonly view: View;
  /** Matchers without an equivalent. */
  readonly unknown: readonly string[];
  /** Whether those may identify the client. */
  readonly mayIdentifyClient: boolean;
}

type Reader = (members: Members, view: View) => Bounds;

const readers: Readonly<Record<string, Reader>> = {
  host: hosts,
  path: paths,
  path_regexp: pathRegexp,
  method: methods,
  header: headers,
  header_regexp: headerExpressions,
  query,
  remote_ip: (members, view) => addresses(members, "remote_ip", view),
  client_ip: (members, view) => addresses(members, "client_ip", view),
  protocol,
};

/** All matchers of one set, which must all match. */
export function readMatch(members: Members, view: View): Match {
  let bounds = always;
  const missing: string[] = [];
  let mayIdentifyClient = false;
  for (const name of members.names) {
    const inner = name === "not" ? readNegations(members, view) : readOne(members, name, view);
    bounds = both(bounds, inner.bounds);
    missing.push(...inner.unknown);
    mayIdentifyClient ||= inner.mayIdentifyClient;
  }
  const patterns =
    view.path === "unknown" ? [] : members.has("path") ? members.texts("path") : view.patterns;
  return { bounds, view: { ...view, patterns }, unknown: missing, mayIdentifyClient };
}

type Part = Omit<Match, "view">;

/** Matchers that cannot identify the client; expressions are checked by their text. */
const IMPERSONAL: ReadonlySet<string> = new Set(["host", "path", "path_regexp", "method", "file"]);
const PERSONAL = /ip|addr|remote|header|cookie|vars|tls|auth|user|query/i;

const isAboutClients = (name: string, value: unknown): boolean =>
  !IMPERSONAL.has(name) && (name !== "expression" || PERSONAL.test(JSON.stringify(value)));

function readOne(members: Members, name: string, view: View): Part {
  const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
  const bounds = reader?.(members, view) ?? unknown;
  const value = members.raw(name);
  if (bounds !== unknown) return { bounds, unknown: [], mayIdentifyClient: false };
  return { bounds, unknown: [name], mayIdentifyClient: isAboutClients(name, value) };
}

function readNegations(members: Members, view: View): Part {
  let bounds = always;
  const missing: string[] = [];
  let mayIdentifyClient = false;
  for (const set of members.objects("not")) {
    const inner = readMatch(set, view);
    bounds = both(bounds, negated(inner.bounds));
    missing.push(...inner.unknown.map((name) => `not ${name}`));
    mayIdentifyClient ||= inner.mayIdentifyClient;
  }
  return { bounds, unknown: missing, mayIdentifyClient };
}

const hasPlaceholder = (text: string) => text.includes("{");

/** To Caddy, a trailing dot makes another name. */
const WITHOUT_DOT = "^(?:\\[.*\\]|[^:]*[^.:])(?::\\d*)?$";

function hosts(members: Members, view: View): Bounds {
  const given = members.texts("host").map((host) => asciiHost(host.toLowerCase()));
  if (given.length === 0) return never;
  if (isChanged("host", view)) return unknown;
  const names: string[] = [];
  for (const host of given) {
    if (host === null) return unknown;
    names.push(host);
  }
  const isListed = names.every((host) => !host.replace(/^\*\./, "").includes("*"));
  const isPlain = names.every((host) => !host.includes("*"));
  const whole = `^(?:${names.map(hostSource).join("|")})(?::\\d*)?$`;
  const isFine = regexProblem(whole) === null;
  if (!isListed) return isFine ? exactly({ hostFields: [whole] }) : unknown;
  const over = { ...anything, hosts: [...new Set(names)] };
  const field = isPlain ? WITHOUT_DOT : isFine ? whole : null;
  const under = field === null ? null : { ...over, hostFields: [field] };
  return { over, under, plain: over, isNever: false };
}

/** Null for an invalid name. */
function asciiHost(host: string): string | null {
  if (isIPv6(host)) return normalizeHost(`[${host}]`);
  const ascii = storedNameOf(host);
  if (ascii.includes("*")) return /^[a-z0-9_*.-]+$/.test(ascii) ? ascii : null;
  return /[:{}]/.test(ascii) ? null : normalizeHost(ascii);
}

/** One label for each asterisk. */
const hostSource = (host: string) =>
  host
    .split(".")
    .map((label) => (label === "*" ? "[^.:]+" : caseless(label)))
    .join("\\.");

const boundsOf = ({ over, under, plain }: PathBounds): Bounds => ({
  over: over === null ? anything : withPaths(over),
  under:
    under === null
      ? null
      : under.includes("")
        ? anything
        : { ...withPaths(under), isUnambiguous: true },
  plain: plain === null ? null : plain.length === 0 ? anything : { ...anything, paths: [plain] },
  isNever: false,
});

const withPaths = (sources: readonly string[]) => ({
  ...anything,
  paths: [sources.map((value) => ({ type: "regex", value }) as const)],
});

function paths(members: Members, { path }: View): Bounds {
  const patterns = members.texts("path");
  if (patterns.length === 0) return never;
  const found = path === "unknown" ? null : pathBounds(patterns, path === "sent" ? null : path);
  return found === null ? unknown : boundsOf(found);
}

function pathRegexp(members: Members, { path }: View): Bounds {
  const regexp = members.object("path_regexp");
  regexp?.raw("name");
  const pattern = regexp?.text("pattern") ?? null;
  const found = pattern === null || path !== "sent" ? null : pathExpression(pattern);
  return found === null ? unknown : boundsOf(found);
}

/** Caddy compares methods literally; clients do not send them in lower case. */
function methods(members: Members, view: View): Bounds {
  const given = members.texts("method");
  if (given.length === 0) return never;
  if (view.isMethodChanged || given.some(hasPlaceholder)) return unknown;
  const over = { ...anything, methods: [...new Set(given.map((method) => method.toUpperCase()))] };
  const usual = given.filter((method) => method === method.toUpperCase());
  const under = usual.length === 0 ? null : { ...anything, methods: [...new Set(usual)] };
  return { over, under, plain: under, isNever: false };
}

const isChanged = (name: string, { changedFields }: View) =>
  changedFields.includes("*") || changedFields.includes(name.toLowerCase());

function headers(members: Members, view: View): Bounds {
  const fields = members.object("header");
  let bounds = always;
  for (const name of fields?.names ?? []) {
    const value = fields?.raw(name) ?? null;
    const found = isChanged(name, view)
      ? unknown
      : headerBounds(name, fields?.texts(name) ?? [], value);
    if (found === unknown) return unknown;
    bounds = both(bounds, found);
  }
  return bounds;
}

/** Null: the header must be absent; an empty list: present. The gateway joins several lines of a header field. */
function headerBounds(name: string, values: readonly string[], given: unknown): Bounds {
  if (given === null) return exactly({ headers: [{ name, op: "absent", value: "" }] });
  if (values.length === 0 || values.includes("*"))
    return exactly({ headers: [{ name, op: "present", value: "" }] });
  if (values.some((value) => hasPlaceholder(value) || /[^\x20-\x7e]/.test(value))) return unknown;
  const parts = values.map(valuePart);
  const [only = ""] = values;
  const strict = values.some((value) => value.includes(","))
    ? null
    : regexTerm(
        name,
        parts.map(({ least }) => least),
      );
  const isPlain = values.length === 1 && !/^\*|\*$/.test(only);
  return ofHeader(
    regexTerm(
      name,
      parts.map(({ most }) => most),
    ),
    isPlain ? { name, op: "equals", value: only } : strict,
  );
}

function valuePart(value: string) {
  const isOpenStart = value.startsWith("*");
  const isOpenEnd = value.endsWith("*") && value.length > 1;
  const text = escaped(value.slice(isOpenStart ? 1 : 0, isOpenEnd ? -1 : undefined));
  return {
    most: `${isOpenStart ? "" : LINE_START}${text}${isOpenEnd ? "" : LINE_END}`,
    least: `${isOpenStart ? "" : "^"}${text}${isOpenEnd ? "" : "$"}`,
  };
}

/** Start and end of one line in joined header lines. */
const LINE_START = "(?:^|[,;] )";
const LINE_END = "(?:[,;] |$)";

const regexTerm = (name: string, sources: readonly string[]): ValueTerm => ({
  name,
  op: "regex",
  value: sources.length === 1 ? (sources[0] ?? "") : `(?:${sources.join("|")})`,
});

function ofHeader(over: ValueTerm, under: ValueTerm | null): Bounds {
  const isFine = (term: ValueTerm) => term.op !== "regex" || regexProblem(term.value) === null;
  const most = isFine(over) ? { ...anything, headers: [over] } : anything;
  const least = under !== null && isFine(under) ? { ...anything, headers: [under] } : null;
  return { over: most, under: least, plain: least, isNever: false };
}

function headerExpressions(members: Members, view: View): Bounds {
  const fields = members.object("header_regexp");
  let bounds = always;
  for (const name of fields?.names ?? []) {
    const regexp = fields?.object(name);
    regexp?.raw("name");
    const source = portable(regexp?.text("pattern") ?? "(?=")?.source ?? null;
    if (source === null || isChanged(name, view)) return unknown;
    const most = source.replaceAll(/\\.|\[\^?\]?[^\]]*\]|[$^]/g, (token) =>
      token === "^" ? LINE_START : token === "$" ? LINE_END : token,
    );
    const over = { name, op: "regex", value: `${most}|[^\\x20-\\x7e]` } as const;
    const under = { name, op: "regex", value: `^(?=[^,;]*$)(?=[^]*?(?:${source}))` } as const;
    const found = ofHeader(over, under);
    const plain = { ...anything, headers: [{ name, op: "regex", value: source } as const] };
    bounds = both(bounds, { ...found, plain: regexProblem(source) === null ? plain : null });
  }
  return bounds;
}

/** Versions differ in which of several values counts, and whether all names must be present. */
function query(members: Members, view: View): Bounds {
  const fields = members.object("query");
  const terms = (fields?.names ?? []).map((name): ValueTerm => {
    const values = fields?.texts(name) ?? [];
    const [only = ""] = values;
    if (values.includes("*")) return { name, op: "present", value: "" };
    if (values.length === 1) return { name, op: "equals", value: only };
    return { name, op: "regex", value: `^(?:${values.map(escaped).join("|")})$` };
  });
  if (view.isQueryChanged || terms.some(({ name, value }) => hasPlaceholder(name + value)))
    return unknown;
  if (terms.length !== 1) return unknown;
  return { ...unknown, plain: { ...anything, query: terms } };
}

const PRIVATE = ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.1/8", "fd00::/8", "::1"];

function addresses(members: Members, name: string, view: View): Bounds {
  const matcher = members.object(name);
  const isForwarded = matcher?.flag("forwarded") === true;
  const given = matcher?.texts("ranges") ?? [];
  const ranges = given.flatMap((range) => (range === "private_ranges" ? PRIVATE : [range]));
  if (ranges.length === 0) return never;
  if (isForwarded || view.hidesAddresses) return unknown;
  return ranges.some((range) => cidrProblem(range) !== null)
    ? unknown
    : exactly({ cidrs: [...new Set(ranges)] });
}

function protocol(members: Members): Bounds {
  const name = members.text("protocol");
  return name === "http" || name === "https" ? exactly({ protocols: [name] }) : unknown;
}
