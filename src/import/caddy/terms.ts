// Conditions on requests, for routes and plugins, with intersection, union and negation; knows no matcher.
import type { PathMatch } from "../../model/route-match.ts";
import type { Document } from "../../control/body.ts";
import { regexProblem } from "../../snapshot/regex-safety.ts";
import { escaped } from "../expression.ts";

export interface ValueTerm {
  readonly name: string;
  readonly op: "equals" | "regex" | "present" | "absent";
  readonly value: string;
}

/** All members must match; one item of a list is enough, and an empty list matches any. */
export interface Terms {
  readonly hosts: readonly string[];
  /** Expressions on the header Host, all of which must match. */
  readonly hostFields: readonly string[];
  /** Lists of paths; one path of every list must match. */
  readonly paths: readonly (readonly PathMatch[])[];
  readonly methods: readonly string[];
  readonly headers: readonly ValueTerm[];
  readonly query: readonly ValueTerm[];
  readonly cidrs: readonly string[];
  readonly protocols: readonly string[];
  /** None of these may match. */
  readonly not: readonly Terms[];
  /** Whether only unambiguous paths match. */
  readonly isUnambiguous: boolean;
}

export const anything: Terms = {
  hosts: [],
  hostFields: [],
  paths: [],
  methods: [],
  headers: [],
  query: [],
  cidrs: [],
  protocols: [],
  not: [],
  isUnambiguous: false,
};

export const isAnything = (terms: Terms): boolean => Bun.deepEquals(terms, anything);

/** Upper and lower bound of the requests that a matcher of Caddy matches. */
export interface Bounds {
  /** Matches at least the requests of the matcher. */
  readonly over: Terms;
  /** Matches at most the requests of the matcher; null: none is known to match. */
  readonly under: Terms | null;
  /** The simple form, where the difference does not matter; null: there is none. */
  readonly plain: Terms | null;
  /** Whether no request matches. */
  readonly isNever: boolean;
}

export const always: Bounds = { over: anything, under: anything, plain: anything, isNever: false };
export const never: Bounds = { over: anything, under: null, plain: null, isNever: true };
/** A matcher without an equivalent. */
export const unknown: Bounds = { over: anything, under: null, plain: null, isNever: false };

export const exactly = (terms: Partial<Terms>): Bounds => {
  const whole = { ...anything, ...terms };
  return { over: whole, under: whole, plain: whole, isNever: false };
};

/** Requests that both take. */
export function both(a: Bounds, b: Bounds): Bounds {
  const over = meet(a.over, b.over);
  if (a.isNever || b.isNever || over === null) return never;
  return {
    over: over.terms,
    under: strictMeet(a.under, b.under),
    plain: strictMeet(a.plain, b.plain),
    isNever: false,
  };
}

/** Negation. */
export function negated(bounds: Bounds): Bounds {
  if (bounds.isNever) return always;
  const { over, under, plain } = bounds;
  if (under !== null && isAnything(under)) return never;
  return {
    over: under === null ? anything : { ...anything, not: [under] },
    under: isAnything(over) ? null : { ...anything, not: [over] },
    plain: plain === null || isAnything(plain) ? null : { ...anything, not: [plain] },
    isNever: false,
  };
}

/** Union. */
export function union(all: readonly Bounds[]): Bounds {
  const some = all.filter(({ isNever }) => !isNever);
  const [first] = some;
  if (first === undefined) return never;
  if (some.length === 1) return first;
  const overs = some.map(({ over }) => over);
  const unders = some.flatMap(({ under }) => (under === null ? [] : [under]));
  return {
    over: joined(overs) ?? anything,
    // A single one is a valid lower bound of the union.
    under: joined(unders) ?? unders[0] ?? null,
    plain: null,
    isNever: false,
  };
}

const lists = ["hosts", "methods", "cidrs", "protocols"] as const;

/** Merges terms that differ in one list only. */
function joined(all: readonly Terms[]): Terms | null {
  const [first] = all;
  if (first === undefined || all.some(isAnything)) return first === undefined ? null : anything;
  for (const name of lists) {
    const rest = all.map((terms) => ({ ...terms, [name]: [] }));
    if (!rest.every((terms) => Bun.deepEquals(terms, rest[0]))) continue;
    if (all.some((terms) => terms[name].length === 0)) return { ...first, [name]: [] };
    return { ...first, [name]: [...new Set(all.flatMap((terms) => terms[name]))] };
  }
  const rest = all.map((terms) => ({ ...terms, paths: [] }));
  const isOfPaths = all.every(({ paths }) => paths.length === 1);
  if (!isOfPaths || !rest.every((terms) => Bun.deepEquals(terms, rest[0]))) return null;
  return { ...first, paths: [all.flatMap(({ paths }) => paths[0] ?? [])] };
}

const strictMeet = (a: Terms | null, b: Terms | null): Terms | null => {
  const met = a === null || b === null ? null : meet(a, b);
  return met?.isExact === true ? met.terms : null;
};

/** Null: the intersection is empty. */
function meet(a: Terms, b: Terms): { readonly terms: Terms; readonly isExact: boolean } | null {
  const hosts = common(a.hosts, b.hosts, hostsOfBoth);
  const methods = common(a.methods, b.methods, sameOfBoth);
  const protocols = common(a.protocols, b.protocols, sameOfBoth);
  if (hosts === null || methods === null || protocols === null) return null;
  // Two lists of networks: the inner one is a bound without address arithmetic.
  const isOneList = a.cidrs.length === 0 || b.cidrs.length === 0;
  return {
    isExact: isOneList || Bun.deepEquals(a.cidrs, b.cidrs),
    terms: {
      hosts,
      methods,
      protocols,
      cidrs: b.cidrs.length === 0 ? a.cidrs : b.cidrs,
      hostFields: [...new Set([...a.hostFields, ...b.hostFields])],
      paths: [...a.paths, ...b.paths],
      headers: [...a.headers, ...b.headers],
      query: [...a.query, ...b.query],
      not: [...a.not, ...b.not],
      isUnambiguous: a.isUnambiguous || b.isUnambiguous,
    },
  };
}

function common(
  a: readonly string[],
  b: readonly string[],
  ofBoth: (a: readonly string[], b: readonly string[]) => string[],
): readonly string[] | null {
  if (a.length === 0) return b;
  if (b.length === 0) return a;
  const found = ofBoth(a, b);
  return found.length === 0 ? null : found;
}

const sameOfBoth = (a: readonly string[], b: readonly string[]) =>
  a.filter((value) => b.includes(value));

const covers = (wide: string, host: string) =>
  wide === host || (wide.startsWith("*.") && host.endsWith(wide.slice(1)));

const hostsOfBoth = (a: readonly string[], b: readonly string[]) => [
  ...new Set(
    a.flatMap((one) =>
      b.flatMap((other) => (covers(one, other) ? [other] : covers(other, one) ? [one] : [])),
    ),
  ),
];

/** Fields of a route that matches these requests, as far as routes can express it. */
export interface RouteTerms {
  readonly fields: Document;
  /** Whether the route matches exactly these requests. */
  readonly isWhole: boolean;
}

export function routeTerms(terms: Terms): RouteTerms {
  const negations = terms.not.map(pathElsewhere);
  const isWhole = !terms.isUnambiguous && negations.every((each) => each !== null);
  const all = [...terms.paths, ...negations.filter((each) => each !== null)];
  const paths = pathsOf(all);
  const headers = [
    ...terms.headers,
    ...terms.hostFields.map((value) => ({ name: "Host", op: "regex", value })),
  ];
  return {
    isWhole: paths !== null && isWhole,
    fields: {
      hosts: terms.hosts,
      paths: paths ?? all.at(-1) ?? [],
      methods: terms.methods,
      headers: headers.filter((each, at) => headers.findIndex((one) => isSame(one, each)) === at),
      query: terms.query,
      client_cidrs: terms.cidrs,
      ...(terms.protocols.length === 0 ? {} : { protocols: terms.protocols }),
    },
  };
}

/** An expression for all other paths; null when the terms have more than paths. */
function pathElsewhere(terms: Terms): readonly PathMatch[] | null {
  const [list] = terms.paths;
  if (list === undefined || !Bun.deepEquals(terms, { ...anything, paths: [list] })) return null;
  const inner = list.map(({ type, value }) => {
    if (type !== "regex") return `${escaped(value)}(?:${type === "exact" ? "" : "/|"}$)`;
    return value.startsWith("^") && !hasChoice(value) ? value.slice(1) : `[^]*?(?:${value})`;
  });
  const value = `^(?!${inner.join("|")})`;
  return value.length > MAX_LENGTH || regexProblem(value) !== null
    ? null
    : [{ type: "regex", value }];
}

const isSame = (a: object, b: object) => Bun.deepEquals(a, b);

const MAX_LENGTH = 1000;

/** One list of paths that is equivalent to all; null: there is none. */
function pathsOf(all: Terms["paths"]): readonly PathMatch[] | null {
  const [first, ...rest] = withoutWider(all);
  if (first === undefined || rest.length === 0) return first ?? [];
  if (![first, ...rest].flat().every(({ type }) => type === "regex")) return null;
  const parts = [first, ...rest].map((list) => {
    const sources = list.map(({ value }) => value);
    const isFront = sources.every((source) => source.startsWith("^") && !hasChoice(source));
    const inner = sources.map((source) => (isFront ? source.slice(1) : source)).join("|");
    return isFront ? `(?=${inner})` : `(?=[^]*?(?:${inner}))`;
  });
  const value = `^${parts.join("")}`;
  if (value.length > MAX_LENGTH || regexProblem(value) !== null) return null;
  return [{ type: "regex", value }];
}

/** Removes lists that contain all paths of another one: they are redundant. */
function withoutWider(all: Terms["paths"]): Terms["paths"] {
  const isWider = (outer: readonly PathMatch[], inner: readonly PathMatch[]) =>
    inner.every((path) => outer.some((other) => liesWithin(path, other)));
  return all.filter(
    (list, at) =>
      !all.some(
        (other, place) =>
          place !== at && isWider(list, other) && (place > at || !isWider(other, list)),
      ),
  );
}

/** Only outside of groups. */
const hasChoice = (source: string) =>
  source.replaceAll(/\\.|\[[^\]]*\]|\(\?:[^()]*\)/g, "").includes("|");

/** An expression for a literal prefix, with letters in both cases and escapes. */
const BEGINNING =
  /^\^(?:\/|[\w\-~ ]|\\.|\[[a-zA-Z]{2}\]|%[0-9A-F]{2}|\(\?:(?:\[[a-zA-Z]{2}\]|%[0-9A-F]{2}|\|)+\))*$/;

function liesWithin(inner: PathMatch, outer: PathMatch): boolean {
  if (inner.type === outer.type && inner.value === outer.value) return true;
  if (outer.type !== "regex")
    return inner.type !== "regex" && outer.type === "prefix"
      ? inner.value.startsWith(`${outer.value}/`)
      : false;
  if (inner.type !== "regex" || !inner.value.startsWith(outer.value)) return false;
  const rest = inner.value.slice(outer.value.length);
  return BEGINNING.test(outer.value) && !/^[*+?{]/.test(rest) && !hasChoice(rest);
}

/**
 * A plugin condition that matches at least (`over`) or at most (`under`) the requests of the terms; null: there is none. An
 * empty one always matches.
 */
export function conditionOf(terms: Terms, as: "over" | "under"): Document | null {
  const members = membersOf(terms);
  if (as === "under" && !members.isWhole) return null;
  const possible = terms.not.flatMap((inner) => {
    const condition = conditionOf(inner, as === "over" ? "under" : "over");
    // A condition has one negation, and it cannot negate everything.
    const isUsable = condition !== null && Object.keys(condition).length > 0;
    return isUsable && !Object.hasOwn(condition, "not") ? [condition] : [];
  });
  const [not, ...others] = merged(possible);
  if (as === "under" && (others.length > 0 || possible.length < terms.not.length)) return null;
  return { ...members.document, ...(not === undefined ? {} : { not }) };
}

/** Merges negations with one list each. */
function merged(all: readonly Document[]): readonly Document[] {
  const [first, ...rest] = all;
  if (first === undefined) return [];
  for (const name of ["path", "host", "method", "cidr"]) {
    const others = [first, ...rest].map(({ [name]: _, ...other }) => other);
    const isAlike = others.every((other) => Bun.deepEquals(other, others[0]));
    if (!isAlike || ![first, ...rest].every((each) => Array.isArray(each[name]))) continue;
    const values = [first, ...rest].flatMap((each) => each[name] as string[]);
    return [{ ...first, [name]: [...new Set(values)] }];
  }
  return all;
}

function membersOf(terms: Terms): { readonly document: Document; readonly isWhole: boolean } {
  const paths = pathsOf(terms.paths);
  const fields = [
    ...terms.headers,
    ...terms.hostFields.map((value): ValueTerm => ({ name: "host", op: "regex", value })),
  ];
  const header = valuesOf(fields.map((each) => ({ ...each, name: each.name.toLowerCase() })));
  const query = valuesOf(terms.query);
  const path = (paths ?? terms.paths.at(-1) ?? []).map(pathText);
  return {
    isWhole: paths !== null && header.isWhole && query.isWhole && terms.protocols.length === 0,
    document: {
      ...(terms.hosts.length === 0 ? {} : { host: terms.hosts }),
      ...(path.length === 0 ? {} : { path }),
      ...(terms.isUnambiguous ? { ambiguous_path: false } : {}),
      ...(terms.methods.length === 0 ? {} : { method: terms.methods }),
      ...(fields.length === 0 ? {} : { header: header.values }),
      ...(terms.query.length === 0 ? {} : { query: query.values }),
      ...(terms.cidrs.length === 0 ? {} : { cidr: terms.cidrs }),
    },
  };
}

const pathText = ({ type, value }: PathMatch): string =>
  type === "exact" ? `=${value}` : type === "regex" ? `~${value}` : value;

/** By name; of two conditions on one name the first is used. */
function valuesOf(list: readonly ValueTerm[]) {
  const values: Record<string, string | null> = {};
  let isWhole = true;
  for (const { name, op, value } of list) {
    const text =
      op === "present" ? "*" : op === "absent" ? null : op === "regex" ? `~${value}` : value;
    // The text would have another meaning in a condition.
    const isOdd = op === "equals" && /^(?:~|\*$)/.test(value);
    if (Object.hasOwn(values, name) ? values[name] !== text : isOdd) isWhole = false;
    else if (!isOdd) values[name] = text;
  }
  return { values, isWhole };
}
