// Converts what nginx compares with paths to the paths of a route, whose comparison differs in escapes and parameters; knows no route.
import type { PathMatch } from "../../model/route-match.ts";
import { regexProblem } from "../../snapshot/regex-safety.ts";
import { caseless, escaped, type Expression, portable } from "../expression.ts";

/** A path that a location names; nginx compares it with the decoded path. */
export interface LiteralPath {
  /** As in a comparable path. */
  readonly text: string;
  /** Whether no comparable path has the rest of it: parameters and backslashes. */
  readonly isCut: boolean;
}

export function literalPath(value: string): LiteralPath {
  const [kept = ""] = /^[^;\\]*/.exec(value) ?? [];
  const text = kept.replaceAll(/%|[^\x20-\x7e]/gu, (character) =>
    [...new TextEncoder().encode(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
  return { text, isCut: kept.length < value.length };
}

/** Whether a route accepts it as a prefix or exact path. */
export const isPlainPath = (path: string): boolean =>
  /^(?:\/[\w\-.~!$&'()+,=:@]*)+$/.test(path) && !/\/\/|\/\.\.?(?:\/|$)/.test(path);

/** An expression in JavaScript; null without an equivalent. */
export interface PathExpression {
  /** Matches at least what nginx matches. */
  readonly over: readonly string[];
  /** Matches at most that; null: nothing is known. */
  readonly under: string | null;
  /** The simple form. */
  readonly plain: string;
}

export function pathExpression(source: string, isCaseless: boolean): PathExpression | null {
  const found = portableWithLookahead(source, isCaseless);
  if (found === null || !isFine(found.source)) return null;
  const { source: plain, ignoresEscapes } = found;
  // PCRE matches $ before a line break at the end, too.
  const over = outsideClasses(plain, /\$/g, "(?:%0A)?$");
  const only = `^(?=[^%]*$)(?=[^]*?(?:${plain}))`;
  return {
    plain,
    over: [isFine(over) ? over : plain, ...(ignoresEscapes ? [] : ["%"])],
    // Few sites need it, and its check is slow.
    get under() {
      return ignoresEscapes ? plain : isFine(only) ? only : null;
    },
  };
}

/** Lookaheads without groups mean the same in both languages: `/\\.(?!well-known)` is common. */
function portableWithLookahead(source: string, isCaseless: boolean): Expression | null {
  const [whole, before = "", kind = "", inner = "", after = ""] =
    /^(.*?)\(\?([!=])((?:[^()\\[\]]|\\[^A-Za-z0-9])*)\)(.*)$/s.exec(source) ?? [];
  if (whole === undefined) return portable(source, isCaseless);
  const parts = [before, inner, after].map((part) => portableWithLookahead(part, isCaseless));
  const [first, middle, last] = parts;
  if (first == null || middle == null || last == null) return null;
  return {
    source: `${first.source}(?${kind}${middle.source})${last.source}`,
    ignoresEscapes: parts.every((part) => part?.ignoresEscapes === true),
  };
}

/** An expression that matches at least what the source does, as close as one is known; null: none but that of all paths. */
export function widerExpression(source: string, isCaseless: boolean): readonly string[] | null {
  const wider = withoutUnknown(source);
  const found = wider === null ? null : pathExpression(wider, isCaseless);
  if (found !== null) return found.over;
  const start = literalStart(source);
  return start === null || start === "/"
    ? null
    : [`^${isCaseless ? caseless(start) : escaped(start)}`];
}

/** Without conditions on what stands around, and with any text for characters that have no equivalent; null: it cannot be read. */
function withoutUnknown(source: string): string | null {
  // Parentheses in classes, and those that are escaped, would be counted.
  if (/\[[^\]]*[()][^\]]*\]|\\[()]/.test(source)) return null;
  let made = outsideClasses(source, /\(\?>/g, "(?:");
  made = outsideClasses(made, /([*+?}])\+/g, "$1");
  // The innermost ones first; a quantifier behind one would become that of what precedes it.
  const around = /\(\?<?[!=](?:[^()\\]|\\.)*\)(?![*+?{])/g;
  const groups = /(\(\?<?[!=](?:[^()\\]|\\.)*)\((?:\?:)?((?:[^()\\]|\\.)*)\)/;
  for (let round = 0; round < MAX_AROUND && /\(\?<?[!=]/.test(made); round++)
    made = made.replaceAll(around, "").replace(groups, "$1$2");
  made = made.replaceAll(
    /\[(?:\\.|[^\]\\])*\]|\\(?:[1-9]|k<\w+>|[pP](?:\w|\{[^}]*\})|x[0-9A-Fa-f]{2}|[hHvVR])[*+?]?/g,
    (piece) => (piece.startsWith("[") ? piece : ".*"),
  );
  return made.trim() === "" || /\(\?<?[!=]/.test(made) ? null : made;
}

const MAX_AROUND = 20;

/** The path with which all paths of an expression begin; null: none is known. */
export function literalStart(source: string): string | null {
  const [, start = "", quantifier] = /^\^(\/(?:[\w/-]|\\\.)*)([?*{]?)/.exec(source) ?? [];
  if (start === "" || /\|/.test(source)) return null;
  const plain = start.replaceAll("\\", "");
  return quantifier === "" ? plain : plain.slice(0, -1);
}

const isFine = (source: string): boolean => source.length <= 1000 && regexProblem(source) === null;

/** Replaces characters that are neither escaped nor in a class. */
export const outsideClasses = (source: string, pattern: RegExp, by: string): string =>
  source.replaceAll(/\\.|\[(?:\\.|[^\]\\])*\]|[^\\[]+/g, (piece) =>
    /^[\\[]/.test(piece) ? piece : piece.replaceAll(pattern, by),
  );

/** With a condition on the beginning of the path. */
export const within = (region: string | null, source: string): string =>
  region === null ? source : `^(?=${region})(?=[^]*?(?:${source}))`;

/** Paths that begin with the first and with none of the others. */
export function regionOf(prefix: string, holes: readonly string[]): string {
  const start = literalPath(prefix).text;
  const without = holes.map((hole) => {
    const rest = escaped(literalPath(hole).text.slice(start.length));
    // The other location also has its path without the slash, which nginx redirects.
    return rest.endsWith("/") ? `${rest.slice(0, -1)}(?:/|$)` : rest;
  });
  return `${escaped(start)}${without.length === 0 ? "" : `(?!${without.join("|")})`}`;
}

export const regexPath = (value: string): PathMatch => ({ type: "regex", value });

/** The beginning of a path as sent, in which other characters may be escaped. */
export function prefixAsSent(prefix: string): string {
  const parts = [...literalPath(prefix).text.matchAll(/%[0-9A-F]{2}|./gs)];
  return `^${parts.map(([one]) => spelled(one)).join("")}`;
}

function spelled(character: string): string {
  if (/^(?:%..|[\w\-.~/])$/.test(character)) return escaped(character);
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
  return `(?:${escaped(character)}|%${code})`;
}

/** nginx replaces the whole path, whatever part of it the expression matches. */
export function wholePathExpression(source: string, isCaseless = false): string | null {
  const found = portable(source, isCaseless)?.source ?? null;
  if (found === null) return null;
  const isWhole = /^\^.*(?:\$|\.\*\)?)$/s.test(found) && !found.includes("|");
  const whole = isWhole
    ? found
    : `${found.startsWith("^") && !found.includes("|") ? found : `^[^]*?(?:${found})`}[^]*$`;
  return whole.length <= 1000 && regexProblem(whole) === null ? whole : null;
}
