// Paths of a Kong route: prefixes, regular expressions and stripping; knows no other condition.
import { escaped, portable } from "../expression.ts";
import type { KongPath } from "./route-match.ts";

/** Paths that one route can have. */
export interface PathParts {
  readonly paths: readonly { readonly type: "prefix" | "regex"; readonly value: string }[];
  /** The rewrite that strips the path, where strip_path is not enough. */
  readonly rewrite: { readonly regex: string; readonly to: string } | null;
  readonly hasRegex: boolean;
  /** Length of the longest path. */
  readonly length: number;
}

/** Since 3.0 an expression begins with ~; before that, every path with other than plain characters is one. */
export const isRegexPath = (path: string, format: string): boolean =>
  format.startsWith("3") ? path.startsWith("~") : !/^[A-Za-z0-9%\-._~/]*$/.test(path);

/** Ignores a trailing slash. */
export const prefixOf = (path: string): string => path.replace(/\/+$/, "") || "/";

/** Kong anchors expressions at the start of the path. */
function anchored(path: string): string {
  const text = path.replace(/^~/, "").replace(/^\^/, "");
  const source = portable(text)?.source ?? text;
  return source.includes("|") ? `^(?:${source})` : `^${source}`;
}

const longest = (paths: readonly KongPath[]) =>
  Math.max(0, ...paths.map(({ text }) => text.length));

/** The simple form: all prefixes in one route, and each stripped expression in a separate one. */
export function plainParts(paths: readonly KongPath[], strip: boolean): readonly PathParts[] {
  const plain = paths.filter(({ isRegex }) => !isRegex);
  const prefixes = [...new Set(plain.map(({ text }) => prefixOf(text)))];
  const expressions = [
    ...new Set(paths.filter(({ isRegex }) => isRegex).map(({ text }) => anchored(text))),
  ];
  const length = longest(paths);
  const hasRegex = expressions.length > 0;
  const some = prefixes.map((value) => ({ type: "prefix", value }) as const);
  const regexes = expressions.map((value) => ({ type: "regex", value }) as const);
  if (!strip || !hasRegex)
    return [{ paths: [...some, ...regexes], rewrite: null, hasRegex, length }];
  const own = regexes.map((path) => {
    const rewrite = { regex: path.value, to: "" };
    return { paths: [path], rewrite, hasRegex, length };
  });
  return some.length === 0 ? own : [{ paths: some, rewrite: null, hasRegex, length }, ...own];
}

/** Exactly as in Kong: a path matches every path that begins with it, longer ones first. */
export function exactParts(
  paths: readonly KongPath[],
  { strip, format }: { readonly strip: boolean; readonly format: string },
): readonly PathParts[] {
  if (paths.length === 0) return [{ paths: [], rewrite: null, hasRegex: false, length: 0 }];
  const hasRegex = paths.some(({ isRegex }) => isRegex);
  return paths.map(({ text, isRegex, over }) => ({
    paths: over === "^" || over === "^/" ? [] : [{ type: "regex", value: over }],
    rewrite:
      strip && text !== "/" ? { regex: isRegex ? anchored(text) : sentPrefix(text), to: "" } : null,
    // Before 3.0, Kong orders a route by all its paths at once.
    hasRegex: format.startsWith("3") ? isRegex : hasRegex,
    length: format.startsWith("3") ? text.length : longest(paths),
  }));
}

/** A prefix that also matches repeated slashes. */
const sentPrefix = (path: string): string =>
  `^${path
    .split("/")
    .filter((segment) => segment !== "")
    .map((segment) => `/+${escaped(segment)}`)
    .join("")}`;
