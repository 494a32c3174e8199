// Converts Caddy's path patterns to expressions on normalized paths, as upper and lower bounds; knows no route.
import type { PathMatch } from "../../model/route-match.ts";
import { regexProblem } from "../../snapshot/regex-safety.ts";
import { escaped, portable } from "../expression.ts";

/** A prefix that Caddy strips before it compares. */
export interface Stripped {
  readonly prefix: string;
  /** Whether every request had the prefix. */
  readonly isSure: boolean;
}

/** The bounds of a list of patterns, one of which must match. */
export interface PathBounds {
  /** Match at least the paths of the patterns; null: every path. */
  readonly over: readonly string[] | null;
  /** Match at most the paths of the patterns, for unambiguous paths; null: none is known to match. */
  readonly under: readonly string[] | null;
  /** The simple form, where only unusual spellings of a path differ; null: there is none. */
  readonly plain: readonly PathMatch[] | null;
}

const everything: PathBounds = { over: null, under: null, plain: [] };

/** Null for a pattern with placeholders. */
export function pathBounds(
  patterns: readonly string[],
  stripped: Stripped | null,
): PathBounds | null {
  if (patterns.some((pattern) => pattern.includes("{"))) return null;
  if (patterns.some((pattern) => pattern === "*" || (pattern === "/*" && stripped === null)))
    return { ...everything, under: [""] };
  const found = patterns.map((pattern) => boundsOf(shapeOf(pattern), stripped));
  const over = found.flatMap((each) => each.over);
  const under = found.flatMap((each) => each.under);
  return {
    over: over.includes("") ? null : [...new Set(over)],
    under: under.length === 0 ? null : [...new Set(under)],
    plain: found.some((each) => each.under.length === 0)
      ? null
      : found.flatMap((each) => each.plain),
  };
}

/** An expression on the decoded path. Null without an equivalent. */
export function pathExpression(pattern: string): PathBounds | null {
  const source = portable(pattern)?.source ?? null;
  if (source === null || regexProblem(source) !== null) return null;
  // Caddy decodes escapes that a normalized path still contains: they may match.
  const only = `^(?=[^%]*$)(?=[^]*?(?:${source}))`;
  return {
    over: [source, "%"],
    under: regexProblem(only) === null ? [only] : null,
    plain: [{ type: "regex", value: source }],
  };
}

/** Whether one pattern is known to contain the other. */
export function liesBelow(inner: string, outer: string): boolean {
  if (!/^[^*?[\\%]*\*$/.test(outer) || /^[^/]|[[\\%{]/.test(inner)) return false;
  const start = outer.slice(0, -1).toLowerCase();
  return inner.toLowerCase().split(/[*?]/, 1)[0]?.startsWith(start) ?? false;
}

/** A parsed pattern. */
interface Shape {
  readonly isAnchored: boolean;
  /** Upper and lower bound; null: no path is known to match. */
  readonly over: string;
  readonly under: string | null;
  readonly hasEnd: boolean;
  /** The text before the first wildcard. */
  readonly start: string;
  readonly plain: PathMatch | null;
}

const count = (text: string, character: string) => text.split(character).length - 1;

function shapeOf(pattern: string): Shape {
  // Normalized paths have no parameters, and a slash for each backslash.
  const [odd] = /[;\\]/.exec(pattern) ?? [];
  if (odd !== undefined) return prefixShape(pattern);
  if (pattern.includes("%")) return escapedShape(pattern);
  const stars = count(pattern, "*");
  const inner = pattern.replaceAll("*", "");
  if (stars === 2 && pattern.length > 2 && /^\*.*\*$/.test(pattern))
    return plainShape(inner, { isAnchored: false, hasEnd: false, plain: null });
  if (stars === 1 && pattern.startsWith("*"))
    return plainShape(inner, { isAnchored: false, hasEnd: true, plain: null });
  if (stars === 1 && pattern.endsWith("*"))
    return plainShape(inner, { isAnchored: true, hasEnd: false, plain: prefixOf(inner) });
  if (!/[*?[]/.test(pattern)) {
    const plain = isWritable(pattern) ? ({ type: "exact", value: pattern } as const) : null;
    return plainShape(pattern, { isAnchored: true, hasEnd: true, plain });
  }
  return globShape(pattern);
}

function plainShape(text: string, rest: Omit<Shape, "over" | "under" | "start">): Shape {
  const { over, under } = literal(merged(text));
  return { ...rest, over, under: isCompared(text) ? under : null, start: text };
}

/** A pattern with `//` matches only `//`; older versions remove dots and spaces from the end of a path. */
const isCompared = (text: string) => !text.includes("//") && !/[. ]$/.test(text);

const merged = (text: string) => text.replaceAll(/\/{2,}/g, "/");

/** Whether the path is valid in a route. */
const isWritable = (path: string) =>
  /^(?:\/[\w\-.~!$&'()+,=:@]*)+$/.test(path) && !/\/\/|\/\.\.?(?:\/|$)/.test(path);

const prefixOf = (text: string): PathMatch | null =>
  text.length > 1 && text.endsWith("/") && isWritable(text)
    ? { type: "prefix", value: text.slice(0, -1) }
    : null;

/** Matches every path with the same literal prefix. */
function prefixShape(pattern: string): Shape {
  const start = /^[^*?[\\;%]*/.exec(pattern)?.[0] ?? "";
  const isAnchored = start.startsWith("/");
  const over = isAnchored ? literal(merged(start)).over : "";
  return { isAnchored: over !== "", hasEnd: false, over, under: null, start, plain: null };
}

/** Go's path.Match: `*` and `?` stop at a slash. */
function globShape(pattern: string): Shape {
  let over = "";
  let under: string | null = isCompared(pattern) ? "" : null;
  for (const [token] of merged(pattern).matchAll(/\[[^\]]*\]|./gsu)) {
    const one = tokenOf(token);
    over += one.over;
    under = under === null || one.under === null ? null : under + one.under;
  }
  const start = /^[^*?[]*/.exec(pattern)?.[0] ?? "";
  return { isAnchored: true, hasEnd: true, over, under, start, plain: null };
}

const ONE = "(?:[^/%]|(?:%[0-9A-F]{2})+)";

function tokenOf(token: string): { readonly over: string; readonly under: string | null } {
  if (token === "*") return { over: "[^/]*", under: "[^/]*" };
  if (token === "?") return { over: ONE, under: "[^/%]" };
  return token.startsWith("[") ? { over: ONE, under: null } : literal(token);
}

/** Caddy compares a pattern with escapes to the encoded path: the upper bound covers every spelling. */
function escapedShape(pattern: string): Shape {
  const parts = pattern.split(/%?\*/).map((part) => {
    const text = part.replaceAll(/(?:%[0-9a-fA-F]{2})+/g, (escapes) => decoded(escapes));
    return literal(text.replaceAll(/[/\\]+/g, "/")).over;
  });
  const start = /^[^*?[\\%]*/.exec(pattern)?.[0] ?? "";
  return {
    isAnchored: true,
    hasEnd: true,
    under: null,
    start,
    plain: null,
    over: parts.join("[^]*"),
  };
}

function decoded(escapes: string): string {
  try {
    return decodeURIComponent(escapes);
  } catch {
    return "";
  }
}

interface Entries {
  readonly over: readonly string[];
  readonly under: readonly string[];
  readonly plain: readonly PathMatch[];
}

function boundsOf(shape: Shape, stripped: Stripped | null): Entries {
  const front = stripped === null ? { over: "", under: "" } : literal(stripped.prefix);
  const sources = [sourceOf(shape, shape.over, front.over)];
  if (stripped?.isSure === false) sources.push(sourceOf(shape, shape.over, ""));
  const over = sources.map((source) => (isFine(source) ? source : fallback(shape, stripped)));
  const { under } = shape;
  const least = under === null ? [] : [strictOf(shape, under, front.under)].filter(isFine);
  return { over, under: least, plain: plainOf(shape, { over, under: least, stripped }) };
}

const END = "[. ]*$";

function sourceOf({ isAnchored, hasEnd }: Shape, body: string, front: string): string {
  const end = hasEnd ? END : "";
  if (!isAnchored) return front === "" ? `${body}${end}` : `^${front}[^]*${body}${end}`;
  // Stripping all of `/x` leaves an empty path, which also matches `/`.
  return front !== "" && body === "/" ? `^${front}(?:/|$)${end}` : `^${front}${body}${end}`;
}

function strictOf({ isAnchored, hasEnd }: Shape, body: string, front: string): string {
  const end = hasEnd ? "$" : "";
  if (!isAnchored) return front === "" ? `${body}${end}` : `^${front}[^]*${body}${end}`;
  return `^${front}${body}${end}`;
}

const MAX_LENGTH = 1000;

const isFine = (source: string) => source.length <= MAX_LENGTH && regexProblem(source) === null;

/** For expressions that are too long or too slow: every path with the same literal prefix. */
function fallback({ isAnchored, start }: Shape, stripped: Stripped | null): string {
  if (stripped?.isSure === true) return `^${literal(stripped.prefix.slice(0, 100)).over}`;
  return isAnchored && stripped === null ? `^${literal(start.slice(0, 100)).over}` : "";
}

/** Caddy ignores case: an expression does, and a path without letters has none. */
function plainOf(
  { plain }: Shape,
  { over, under, stripped }: Omit<Entries, "plain"> & { readonly stripped: Stripped | null },
): PathMatch[] {
  if (plain === null || stripped?.isSure === false)
    return over.map((value) => ({ type: "regex", value }));
  if (stripped === null && !/[a-z]/i.test(plain.value)) return [plain];
  return under.map((value) => ({ type: "regex", value }));
}

/** A text in all spellings that Caddy may treat as equal, and in those that it certainly does. */
function literal(text: string): { readonly over: string; readonly under: string } {
  let over = "";
  let under = "";
  for (const character of text) {
    const all = spellings(character);
    over += oneOf(all);
    under += isAscii(character) ? oneOf(all.filter(isAscii)) : oneOf(all);
  }
  return { over, under };
}

const isAscii = (character: string) => /^[\x20-\x7e]$/.test(character);

function oneOf(characters: readonly string[]): string {
  const plain = characters.filter((each) => isAscii(each) && each !== "%");
  const rest = characters.filter((each) => !plain.includes(each)).map(encoded);
  const [only = ""] = plain;
  const own = plain.length > 1 ? `[${plain.join("")}]` : escaped(only);
  const all = [...(plain.length === 0 ? [] : [own]), ...rest];
  return all.length === 1 ? (all[0] ?? "") : `(?:${all.join("|")})`;
}

/** As in a normalized path. */
const encoded = (character: string) =>
  [...new TextEncoder().encode(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
    .join("");

/** All characters with the same lower case: for `k` also the Kelvin sign. */
function spellings(character: string): readonly string[] {
  const lower = lowerCase(character);
  if (/^[a-z]$/.test(lower)) {
    const upper = lower.toUpperCase();
    const more = lower === "k" ? ["\u212a"] : lower === "i" ? ["\u0130"] : [];
    return [lower, upper, ...more];
  }
  if (isAscii(character)) return [character];
  const found = [character];
  for (let code = 0x80; code < 0x1_f000; code++) {
    const other = String.fromCodePoint(code);
    if (other !== character && lowerCase(other) === lower) found.push(other);
  }
  return found;
}

/** As in Go, which maps one character to one. */
function lowerCase(character: string): string {
  if (character === "\u0130") return "i";
  const lower = character.toLowerCase();
  return [...lower].length === 1 ? lower : character;
}
