// Caddy's path patterns as expressions on the paths that routes compare: what they match at most and at least; knows no route.
import type { PathMatch } from "../../../model/route.ts";
import { regexProblem } from "../../../snapshot/regex-safety.ts";
import { escaped, portable } from "../expression.ts";

/** A prefix that was taken off before Caddy compares. */
export interface Stripped {
  readonly prefix: string;
  /** Whether every request has had it. */
  readonly isSure: boolean;
}

/** What a list of patterns comes to, of which one has to match. */
export interface PathBounds {
  /** Match whatever the patterns match, and maybe more; null: everything. */
  readonly over: readonly string[] | null;
  /** Match nothing else, of paths that can be read in one way only; null: nothing is known to match. */
  readonly under: readonly string[] | null;
  /** As people write it, where upper and lower case do not matter; null: it cannot be written. */
  readonly plain: readonly PathMatch[] | null;
}

const everything: PathBounds = { over: null, under: null, plain: [] };

/** Null for what means something that only Caddy knows. */
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

/** An expression on the decoded path. Null where it has no counterpart. */
export function pathExpression(pattern: string): PathBounds | null {
  const source = portable(pattern)?.source ?? null;
  if (source === null || regexProblem(source) !== null) return null;
  // Whatever is still escaped in a path that routes compare is something else to Caddy: it may match.
  const only = `^(?=[^%]*$)(?=[^]*?(?:${source}))`;
  return {
    over: [source, "%"],
    under: regexProblem(only) === null ? [only] : null,
    plain: [{ type: "regex", value: source }],
  };
}

/** Whether everything that is below one pattern is below the other, as far as that is plain to see. */
export function liesBelow(inner: string, outer: string): boolean {
  if (!/^[^*?[\\%]*\*$/.test(outer) || /^[^/]|[[\\%{]/.test(inner)) return false;
  const start = outer.slice(0, -1).toLowerCase();
  return inner.toLowerCase().split(/[*?]/, 1)[0]?.startsWith(start) ?? false;
}

/** A pattern in parts. */
interface Shape {
  readonly isAnchored: boolean;
  /** At most and at least; null: nothing is known to match. */
  readonly over: string;
  readonly under: string | null;
  readonly hasEnd: boolean;
  /** What stands in front of the first wildcard. */
  readonly start: string;
  readonly plain: PathMatch | null;
}

const count = (text: string, character: string) => text.split(character).length - 1;

function shapeOf(pattern: string): Shape {
  // In the paths that routes compare, parameters are left out and a backslash is a slash.
  const [odd] = /[;\\]/.exec(pattern) ?? [];
  if (odd !== undefined) return vagueShape(pattern);
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

/** Two slashes in a pattern are compared with two; older versions leave out dots and spaces at the end of a request's path. */
const isCompared = (text: string) => !text.includes("//") && !/[. ]$/.test(text);

const merged = (text: string) => text.replaceAll(/\/{2,}/g, "/");

/** Whether a path may stand like this in a route. */
const isWritable = (path: string) =>
  /^(?:\/[\w\-.~!$&'()+,=:@]*)+$/.test(path) && !/\/\/|\/\.\.?(?:\/|$)/.test(path);

const prefixOf = (text: string): PathMatch | null =>
  text.length > 1 && text.endsWith("/") && isWritable(text)
    ? { type: "prefix", value: text.slice(0, -1) }
    : null;

/** Everything that begins in the same way. */
function vagueShape(pattern: string): Shape {
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

/** With escapes, Caddy compares these as they are sent: as much as could be meant. */
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
  return { over, under: least, plain: plainOf(shape, over, stripped) };
}

const END = "[. ]*$";

function sourceOf({ isAnchored, hasEnd }: Shape, body: string, front: string): string {
  const end = hasEnd ? END : "";
  if (!isAnchored) return front === "" ? `${body}${end}` : `^${front}[^]*${body}${end}`;
  // Of `/x`, when all of it is taken off, nothing is left to compare with `/`.
  return front !== "" && body === "/" ? `^${front}(?:/|$)${end}` : `^${front}${body}${end}`;
}

function strictOf({ isAnchored, hasEnd }: Shape, body: string, front: string): string {
  const end = hasEnd ? "$" : "";
  if (!isAnchored) return front === "" ? `${body}${end}` : `^${front}[^]*${body}${end}`;
  return `^${front}${body}${end}`;
}

const MAX_LENGTH = 1000;

const isFine = (source: string) => source.length <= MAX_LENGTH && regexProblem(source) === null;

/** Where an expression would be too long or too slow: whatever begins in the same way. */
function fallback({ isAnchored, start }: Shape, stripped: Stripped | null): string {
  if (stripped?.isSure === true) return `^${literal(stripped.prefix.slice(0, 100)).over}`;
  return isAnchored && stripped === null ? `^${literal(start.slice(0, 100)).over}` : "";
}

function plainOf(
  { plain }: Shape,
  over: readonly string[],
  stripped: Stripped | null,
): PathMatch[] {
  if (plain === null || stripped?.isSure === false)
    return over.map((value) => ({ type: "regex", value }));
  if (stripped === null) return [plain];
  return [{ type: plain.type, value: stripped.prefix + plain.value }];
}

/** A text in all spellings that Caddy takes for the same, and in those that are the same beyond doubt. */
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

/** As it stands in a path that routes compare. */
const encoded = (character: string) =>
  [...new TextEncoder().encode(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
    .join("");

/** All characters that are the same as this one in lower case: of `k` also the sign for kelvin. */
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

/** Go's: one character stays one. */
function lowerCase(character: string): string {
  if (character === "\u0130") return "i";
  const lower = character.toLowerCase();
  return [...lower].length === 1 ? lower : character;
}
