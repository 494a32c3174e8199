// Paths of a route of Kong: prefixes and regular expressions, and what is left of a path that is stripped; knows nothing else.
import { escaped, portable } from "../expression.ts";
import type { KongPath } from "./route-match.ts";

/** What one route here can hold. */
export interface PathParts {
  readonly paths: readonly { readonly type: "prefix" | "regex"; readonly value: string }[];
  /** What is taken off, where that is no prefix of the route. */
  readonly rewrite: { readonly regex: string; readonly to: string } | null;
  readonly hasRegex: boolean;
  /** Of the longest path. */
  readonly length: number;
}

/** From 3.0 on an expression begins with ~; before that whatever holds more than plain characters is one. */
export const isRegexPath = (path: string, format: string): boolean =>
  format.startsWith("3") ? path.startsWith("~") : !/^[A-Za-z0-9%\-._~/]*$/.test(path);

/** A slash at the end does not count. */
export const prefixOf = (path: string): string => path.replace(/\/+$/, "") || "/";

/** Kong's expressions begin where the path does. */
function anchored(path: string): string {
  const text = path.replace(/^~/, "").replace(/^\^/, "");
  const source = portable(text)?.source ?? text;
  return source.includes("|") ? `^(?:${source})` : `^${source}`;
}

const longest = (paths: readonly KongPath[]) =>
  Math.max(0, ...paths.map(({ text }) => text.length));

/** As people write them: prefixes in one part, and an expression that is to be stripped in one of its own. */
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

/** As Kong matches them: a path takes whatever begins with it, and a longer one goes before a shorter one. */
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
    // Versions before 3.0 look at all paths of a route at once.
    hasRegex: format.startsWith("3") ? isRegex : hasRegex,
    length: format.startsWith("3") ? text.length : longest(paths),
  }));
}

/** A prefix as clients may send it, with slashes repeated. */
const sentPrefix = (path: string): string =>
  `^${path
    .split("/")
    .filter((segment) => segment !== "")
    .map((segment) => `/+${escaped(segment)}`)
    .join("")}`;
