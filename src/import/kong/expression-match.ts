// Converts the alternatives of a Kong expression to conditions of routes; knows no route and no plugin.
import { escaped, portable } from "../expression.ts";
import type { Alternative, Comparison } from "./expressions.ts";
import { alternativesOf } from "./expressions.ts";
import {
  allOf,
  type FieldTerms,
  fieldTerm,
  hostsFrom,
  type Hosts,
  type KongPath,
  pathOf,
} from "./route-match.ts";

/** Conditions of one route. */
export interface ExpressionMatch {
  readonly hosts: Hosts;
  readonly paths: readonly KongPath[];
  readonly headers: FieldTerms;
  readonly methods: readonly string[];
  /** `http` and `https`; empty: both. */
  readonly protocols: readonly string[];
  readonly cidrs: readonly string[];
}

/** The texts of one alternative; one of each list must match. */
interface Texts {
  readonly hosts: readonly string[];
  readonly paths: readonly string[];
  readonly methods: readonly string[];
  readonly protocols: readonly string[];
  readonly cidrs: readonly string[];
  readonly headers: readonly Comparison[];
}

const nothing: Texts = {
  hosts: [],
  paths: [],
  methods: [],
  protocols: [],
  cidrs: [],
  headers: [],
};

const LISTS = ["hosts", "paths", "methods", "protocols", "cidrs"] as const;
type List = (typeof LISTS)[number];

/** For each route that the expression needs; null: it has a part without an equivalent. */
export function matchesOf(expression: string): readonly ExpressionMatch[] | null {
  const alternatives = alternativesOf(expression);
  const found = alternatives?.map(textsOf) ?? [];
  if (alternatives === null || found.includes(null)) return null;
  const merged = joined(found.filter((texts) => texts !== null));
  return merged.map(({ headers, hosts, paths, ...rest }) => ({
    ...rest,
    hosts: hostsFrom(hosts),
    paths: paths.map((text) => pathOf(text, "3.0")),
    headers: allOf(headers.map(termsOf)),
  }));
}

/** Null: a comparison has no equivalent, or two compare the same field. */
function textsOf(alternative: Alternative): Texts | null {
  let texts = nothing;
  for (const comparison of alternative) {
    const { field } = comparison;
    const [, header] = /^http\.headers\.([\w-]+)$/.exec(field) ?? [];
    if (header !== undefined) {
      const isRepeated = texts.headers.some((other) => other.field === field);
      if (isRepeated || !["==", "~"].includes(comparison.op)) return null;
      texts = { ...texts, headers: [...texts.headers, comparison] };
      continue;
    }
    const found = textOf(comparison);
    if (found === null || texts[found.list].length > 0) return null;
    texts = { ...texts, [found.list]: [found.text] };
  }
  return texts;
}

function textOf(comparison: Comparison): { readonly list: List; readonly text: string } | null {
  const { field, op, value, isLower } = comparison;
  const one = (list: List, text: string | null) => (text === null ? null : { list, text });
  switch (field) {
    case "http.host":
      return one("hosts", hostOf(comparison));
    case "http.path":
      return one("paths", isLower ? null : pathTextOf(comparison));
    case "http.method":
      return one("methods", op === "==" && !isLower && /^[A-Z]+$/.test(value) ? value : null);
    case "net.protocol":
      return one("protocols", op === "==" && /^https?$/.test(value) ? value : null);
    case "net.src.ip":
      return one("cidrs", op === "in" || op === "==" ? value : null);
    default:
      return null;
  }
}

function hostOf({ op, value }: Comparison): string | null {
  const isName = /^[a-z0-9_.-]+$/.test(value) && !/\.$/.test(value);
  if (!isName) return null;
  if (op === "==") return value;
  if (op === "=^") return value.startsWith(".") ? `*${value}` : null;
  return op === "^=" && value.endsWith(".") ? `${value}*` : null;
}

/** As in a list of paths of the format 3.0: a prefix, or `~` and an expression from the start of the path. */
function pathTextOf({ op, value }: Comparison): string | null {
  if (op === "^=") return value.startsWith("/") ? value : null;
  if (op === "==") return value.startsWith("/") ? `~${escaped(value)}$` : null;
  if (op === "=^") return `~/.*${escaped(value)}$`;
  // A choice outside of groups would need the anchor in each part.
  if (op !== "~" || hasChoice(value)) return null;
  return value.startsWith("^") ? `~${value.slice(1)}` : `~.*${value}`;
}

const hasChoice = (source: string): boolean => {
  let depth = 0;
  for (const [token] of source.matchAll(/\\.|\[[^\]]*\]|[()|]/gs)) {
    if (token === "(") depth += 1;
    if (token === ")") depth -= 1;
    if (token === "|" && depth === 0) return true;
  }
  return false;
};

/** Kong writes `-` in names of headers as `_`. */
function termsOf({ field, op, value, isLower }: Comparison): FieldTerms {
  const name = field.slice("http.headers.".length).replaceAll("_", "-");
  if (op === "==") return fieldTerm(name, { values: [value], isCaseless: isLower });
  const source = portable(value, isLower)?.source ?? null;
  return fieldTerm(name, { source, text: value });
}

/** Merges alternatives that differ in one list only: one route has all its items. */
function joined(all: readonly Texts[]): readonly Texts[] {
  for (const [at, one] of all.entries())
    for (const [place, other] of all.entries())
      if (place > at) {
        const name = onlyDifference(one, other);
        if (name === null) continue;
        const both = { ...one, [name]: [...new Set([...one[name], ...other[name]])] };
        return joined(
          all.flatMap((each) => (each === one ? [both] : each === other ? [] : [each])),
        );
      }
  return all;
}

function onlyDifference(a: Texts, b: Texts): List | null {
  if (!Bun.deepEquals(a.headers, b.headers)) return null;
  const different = LISTS.filter((name) => !Bun.deepEquals(a[name], b[name]));
  const [name = "hosts"] = different;
  // An empty list matches everything.
  const isMergeable = different.length <= 1 && a[name].length > 0 && b[name].length > 0;
  return isMergeable ? name : null;
}
