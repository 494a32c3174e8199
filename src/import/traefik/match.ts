// Converts conditions of a Traefik rule to those of a route; knows no router and no order.
import type { ValueMatch } from "../../model/route.ts";
import { caseless, escaped, portable } from "../expression.ts";
import { fromPattern, HOST_END, hostExpression } from "./hosts.ts";
import type { Conjunction, RuleTerm } from "./rule.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** One path, in a plain form and as expressions on normalized paths. */
export interface TraefikPath {
  readonly kind: "prefix" | "exact" | "regex";
  readonly text: string;
  /** As it is compared where small differences do not matter: a path, or an expression. */
  readonly plain: string;
  /** Matches whenever Traefik does, and maybe more often. */
  readonly over: string;
  /** Matches only when Traefik does, on unambiguous paths; null: it cannot be expressed. */
  readonly under: string | null;
}

/** Requests of one alternative of a rule. */
export interface RouteMatch {
  readonly hosts: readonly string[];
  /** Any of them; empty: all. */
  readonly paths: readonly TraefikPath[];
  readonly methods: readonly string[];
  readonly headers: readonly ValueMatch[];
  readonly query: readonly ValueMatch[];
  readonly clientCidrs: readonly string[];
  /** Whether it may match more or fewer requests than in Traefik, apart from its paths. */
  readonly isInexact: boolean;
  /** Whether a port in the header Host makes it another host. */
  readonly comparesWholeHost?: boolean;
}

/** The alternatives of a rule as matches, those that differ in hosts or in paths only merged; text: why it has no equivalent. */
export function matchesOf(alternatives: readonly Conjunction[]): readonly RouteMatch[] | string {
  const found: RouteMatch[] = [];
  for (const terms of alternatives.flatMap(expanded)) {
    const match = matchOf(terms);
    if (typeof match === "string") return match;
    if (match !== null) found.push(match);
  }
  const byHosts = merged(found, "hosts", (match) => match.hosts.length > 0);
  return merged(byHosts, "paths", (match) => match.paths.length > 0);
}

/**
 * Terms with several values become alternatives, and so does `!Header(a, b)`: the absence of the header, or another value.
 */
function expanded(terms: Conjunction): readonly Conjunction[] {
  const at = terms.findIndex(isExpandable);
  const term = terms[at];
  if (term === undefined) return [terms];
  const rest = terms.toSpliced(at, 1);
  if (!term.isNegated)
    return term.values.flatMap((value) => expanded([...rest, { ...term, values: [value] }]));
  const absent = { ...term, values: term.values.slice(0, 1) };
  const other = { ...term, matcher: `${term.matcher} other`, isNegated: false };
  return [absent, other].flatMap((one) => expanded([...rest, one]));
}

const isExpandable = ({ matcher, values, isNegated }: RuleTerm): boolean =>
  isNegated
    ? /^(?:headers?|query)$/.test(matcher) && values.length === 2
    : /^(?:path|hostregexp)/.test(matcher) && values.length > 1;

function merged<K extends "hosts" | "paths">(
  matches: readonly RouteMatch[],
  field: K,
  isListed: (match: RouteMatch) => boolean,
): readonly RouteMatch[] {
  const found = new Map<string, RouteMatch>();
  for (const match of matches) {
    const { [field]: own, ...rest } = match;
    const key = `${isListed(match)} ${JSON.stringify(rest)}`;
    const known = found.get(key);
    const all = new Map<string, unknown>();
    for (const one of [...(known?.[field] ?? []), ...own]) all.set(JSON.stringify(one), one);
    found.set(key, { ...match, [field]: [...all.values()] });
  }
  return [...found.values()];
}

/** The gateway refuses a condition that is given twice. */
const unique = (matches: readonly ValueMatch[]): readonly ValueMatch[] =>
  matches.filter((match, at) => matches.findIndex((other) => Bun.deepEquals(other, match)) === at);

interface Collected {
  hosts: readonly string[] | null;
  readonly paths: { readonly path: TraefikPath; readonly isNegated: boolean }[];
  methods: readonly string[] | null;
  readonly headers: ValueMatch[];
  readonly query: ValueMatch[];
  clientCidrs: readonly string[] | null;
  isInexact: boolean;
  isImpossible: boolean;
}

function matchOf(terms: Conjunction): RouteMatch | string | null {
  const found: Collected = {
    hosts: null,
    paths: [],
    methods: null,
    headers: [],
    query: [],
    clientCidrs: null,
    isInexact: false,
    isImpossible: false,
  };
  for (const term of terms) {
    const problem = collect(term, found);
    if (problem !== null) return problem;
  }
  if (found.isImpossible) return null;
  const paths = pathsOf(found.paths);
  if (typeof paths === "string") return paths;
  return {
    hosts: found.hosts ?? [],
    paths,
    methods: found.methods ?? [],
    headers: unique(found.headers),
    query: unique(found.query),
    clientCidrs: found.clientCidrs ?? [],
    isInexact: found.isInexact,
  };
}

/** Returns why the term has no equivalent; null: it has. */
function collect(term: RuleTerm, found: Collected): string | null {
  const { matcher, values, isNegated } = term;
  const [name = "", value = ""] = values;
  const unknown = `${isNegated ? "!" : ""}${matcher}(${values.join(", ")}) has no equivalent`;
  if (values.length === 0) return unknown;
  switch (matcher) {
    case "host":
    case "hostheader":
      return addHosts(values, isNegated, found);
    case "hostregexp":
      return addHostExpressions(values, isNegated, found) ? null : unknown;
    case "path":
    case "pathprefix":
    case "pathregexp":
      return addPaths(term, found) ? null : unknown;
    case "method":
      found.methods = meet(found.methods, methodsOf(values, isNegated), found);
      found.isInexact ||= isNegated;
      return null;
    case "clientip":
      if (isNegated) return unknown;
      found.clientCidrs = found.clientCidrs === null ? values : [];
      found.isInexact ||= found.clientCidrs.length === 0;
      return null;
    case "header":
    case "headers":
    case "headerregexp":
    case "headersregexp":
      return addValue(found.headers, { name, value, term }) ? null : unknown;
    case "header other":
    case "headers other":
    case "query other":
      found[matcher.startsWith("query") ? "query" : "headers"].push({
        name,
        op: "regex",
        value: `^(?!${escaped(value)}$)`,
      });
      return null;
    case "query":
    case "queryregexp":
      return addQuery(term, found) ? null : unknown;
    default:
      return unknown;
  }
}

function addHosts(values: readonly string[], isNegated: boolean, found: Collected): string | null {
  const names = values.map((host) => storedNameOf(host.trim()).toLowerCase().replace(/\.$/, ""));
  const wrong = names.find((host) => host === "" || host.includes("*"));
  if (wrong !== undefined) return `host(${wrong}) matches no request`;
  if (isNegated) addHostHeader(`^(?!(?:${names.map(caseless).join("|")})${HOST_END})`, found);
  else found.hosts = meet(found.hosts, names, found);
  return null;
}

const addHostHeader = (value: string, { headers }: Collected): void => {
  headers.push({ name: "Host", op: "regex", value });
};

function addHostExpressions(
  values: readonly string[],
  isNegated: boolean,
  found: Collected,
): boolean {
  const sets = values.map(hostExpression);
  const known = sets.filter((set) => set !== null);
  if (known.length < sets.length) return false;
  if (isNegated) {
    for (const { hosts, header } of known) {
      if (header === null && hosts.length === 0) found.isImpossible = true;
      const names = hosts.map((host) => host.replace(/^\*\./, "")).map(caseless);
      const below = hosts.some((host) => host.startsWith("*.")) ? "(?:[^:]+\\.)" : "";
      addHostHeader(`^(?!${header ?? `${below}(?:${names.join("|")})${HOST_END}`})`, found);
    }
    return true;
  }
  const [first] = known;
  if (first === undefined) return false;
  if (first.hosts.length > 0)
    found.hosts =
      first.header === null ? meet(found.hosts, first.hosts, found) : (found.hosts ?? first.hosts);
  if (first.header !== null) addHostHeader(first.header, found);
  return true;
}

/** The values of both lists; null: any. */
function meet(
  before: readonly string[] | null,
  values: readonly string[],
  found: Collected,
): readonly string[] {
  const both = before === null ? values : before.filter((value) => values.includes(value));
  found.isImpossible ||= both.length === 0;
  return both;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

const methodsOf = (values: readonly string[], isNegated: boolean): readonly string[] => {
  const wanted = values.map((value) => value.trim().toUpperCase());
  return isNegated ? METHODS.filter((method) => !wanted.includes(method)) : wanted;
};

function addValue(
  list: ValueMatch[],
  { name, value, term }: { readonly name: string; readonly value: string; readonly term: RuleTerm },
): boolean {
  if (term.isNegated) {
    if (term.values.length > 1) return false;
    list.push({ name, op: "absent", value: "" });
    return true;
  }
  if (term.values.length === 1) {
    list.push({ name, op: "present", value: "" });
    return true;
  }
  if (term.values.length !== 2) return false;
  if (!term.matcher.endsWith("regexp")) {
    list.push({ name, op: "equals", value });
    return true;
  }
  const source = portable(value)?.source;
  if (source === undefined) return false;
  list.push({ name, op: "regex", value: source });
  return true;
}

/** `Query(a, b)`; in Traefik 2 `Query(a=b, c=d)`. */
function addQuery(term: RuleTerm, { query }: Collected): boolean {
  if (!term.values.some((value) => value.includes("=")) || term.matcher !== "query")
    return addValue(query, { name: term.values[0] ?? "", value: term.values[1] ?? "", term });
  if (term.isNegated) return false;
  return term.values.every((pair) => {
    const at = pair.indexOf("=");
    const [name, value] = at === -1 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
    return addValue(query, { name, value, term: { ...term, values: [name, value] } });
  });
}

function addPaths({ matcher, values, isNegated }: RuleTerm, found: Collected): boolean {
  const paths = values.map((value) => pathOf(value, matcher));
  const known = paths.filter((path) => path !== null);
  if (known.length < paths.length) return false;
  for (const path of known) found.paths.push({ path, isNegated });
  return known.length > 0;
}

const hasPlaceholder = (text: string) => /\{\w+(?::[^{}]*(?:\{[^{}]*\}[^{}]*)*)?\}/.test(text);

function pathOf(text: string, matcher: string): TraefikPath | null {
  if (matcher === "pathregexp") return expressionPath(text, text);
  if (!text.startsWith("/")) return null;
  const isPrefix = matcher === "pathprefix";
  if (hasPlaceholder(text)) {
    const source = fromPattern(text, "[^/]+");
    return expressionPath(text, isPrefix ? source.slice(0, -1) : source);
  }
  // Routes match `%2F` and the like decoded, and other escapes as they are.
  const compared = text
    .replaceAll(/[^\0-\x7f]+/g, (characters) => encodeURI(characters.toWellFormed()))
    .replaceAll(/[/\\]+/g, "/")
    .replace(/;.*$/s, "");
  const over = `^${escaped(compared)}${isPrefix ? "" : "$"}`;
  const under = /^[\w\-.~/]*$/.test(text) ? over : null;
  return { kind: isPrefix ? "prefix" : "exact", text, plain: text, over, under };
}

function expressionPath(text: string, source: string): TraefikPath | null {
  const known = portable(source);
  if (known === null) return null;
  const plain = known.source;
  if (known.ignoresEscapes) return { kind: "regex", text, plain, over: plain, under: plain };
  // Every path with the same literal prefix: some of them may match.
  const [start = ""] =
    source.startsWith("^") && !source.includes("|")
      ? (/^[\w\-~/]*(?![*+?{])/.exec(source.slice(1)) ?? [])
      : [];
  return { kind: "regex", text, plain, over: `^${escaped(start)}`, under: null };
}

/** Several conditions on the path become one expression. */
function pathsOf(terms: Collected["paths"]): readonly TraefikPath[] | string {
  const [only] = terms;
  if (only === undefined) return [];
  if (terms.length === 1 && !only.isNegated) return [only.path];
  const ahead = (source: string, isNegated: boolean) => {
    const isAnchored = source.startsWith("^") && !source.includes("|");
    const inner = isAnchored ? source.slice(1) : `[^]*?(?:${source})`;
    return `(?${isNegated ? "!" : "="}${inner})`;
  };
  const over = terms.map(({ path, isNegated }) => {
    const source = isNegated ? path.under : path.over;
    return source === null ? "" : ahead(source, isNegated);
  });
  const under = terms.map(({ path, isNegated }) => {
    const source = isNegated ? path.over : path.under;
    return source === null ? null : ahead(source, isNegated);
  });
  const text = terms.map(({ path }) => path.text).join(" ");
  const plain = terms.map(({ path, isNegated }) =>
    ahead(path.kind === "regex" ? path.plain : path.over, isNegated),
  );
  return [
    {
      kind: "regex",
      text,
      plain: `^${plain.join("")}`,
      over: `^${over.join("")}`,
      under: under.includes(null) ? null : `^${under.join("")}`,
    },
  ];
}
