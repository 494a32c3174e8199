// Paths of a route of Kong: prefixes and regular expressions, and what is left of a path that is stripped; knows nothing else.

export interface PathParts {
  readonly paths: readonly { readonly type: "prefix" | "regex"; readonly value: string }[];
  /** The expression, when it is to be stripped: only one fits into a route. */
  readonly regex: string | null;
}

/** From 3.0 on an expression begins with ~; before that whatever holds more than plain characters is one. */
export const isRegexPath = (path: string, format: string): boolean =>
  format.startsWith("3") ? path.startsWith("~") : !/^[A-Za-z0-9%\-._~/]*$/.test(path);

/** A slash at the end does not count. */
export const prefixOf = (path: string): string => path.replace(/\/+$/, "") || "/";

/** Kong's expressions begin where the path does. */
function anchored(path: string): string {
  const source = path.replace(/^~/, "").replace(/^\^/, "");
  return source.includes("|") ? `^(?:${source})` : `^${source}`;
}

/** What one route can hold, in one part. */
export function splitPaths(
  paths: readonly string[],
  { strip, format }: { readonly strip: boolean; readonly format: string },
): readonly PathParts[] {
  const isRegex = (path: string) => isRegexPath(path, format);
  const prefixes = [...new Set(paths.filter((path) => !isRegex(path)).map(prefixOf))];
  const expressions = [...new Set(paths.filter(isRegex).map(anchored))];
  const plain = prefixes.map((value) => ({ type: "prefix", value }) as const);
  const regexes = expressions.map((value) => ({ type: "regex", value }) as const);
  if (!strip || regexes.length === 0) return [{ paths: [...plain, ...regexes], regex: null }];
  const own = regexes.map((path) => ({ paths: [path], regex: path.value }));
  return plain.length === 0 ? own : [{ paths: plain, regex: null }, ...own];
}

/** Takes away what the expression matched. */
export const stripRegex = (source: string) => ({ regex: source, to: "" });
