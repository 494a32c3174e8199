// Replacement texts with variables and groups of an expression, and the escaping of client values; knows no request.
import type { RequestContext } from "../../pdk/context.ts";
import { compileTemplate, type Template, templateProblem } from "../../pdk/template.ts";

type Escape = ((value: string) => string) | null;

/** `$1` or `$<name>`, but not the start of a variable. */
const GROUP = /\$([1-9]\d?|<[A-Za-z_]\w*>)/;

/** Null for a valid text. */
export function replacementProblem(source: string): string | null {
  // A group inside of a variable would split it.
  for (const part of source.split(new RegExp(GROUP.source.replace("(", "(?:"), "g"))) {
    const problem = templateProblem(part);
    if (problem !== null) return problem;
  }
  return null;
}

/** Builds the replacement of a match. */
export type Replacement = (context: RequestContext, found: readonly unknown[]) => string;

/** `escaped` is applied to variables; groups are part of the original text. */
export function compileReplacement(source: string, escaped: Escape): Replacement {
  const parts: (Template | { readonly group: number | string })[] = source
    .split(new RegExp(GROUP.source, "g"))
    .map((part, at) => {
      if (at % 2 === 0) return compileTemplate(part, escaped);
      return { group: part.startsWith("<") ? part.slice(1, -1) : Number(part) };
    });
  return (context, found) => {
    let text = "";
    for (const part of parts)
      text += typeof part === "function" ? part(context) : groupOf(found, part.group);
    return text;
  };
}

/** `found`: the arguments of a String.replace callback: match, groups, offset, text, and named groups. */
function groupOf(found: readonly unknown[], group: number | string): string {
  const last = found.at(-1);
  const named = typeof last === "object" && last !== null ? last : null;
  if (typeof group === "string") {
    const value = named === null ? undefined : (named as Record<string, unknown>)[group];
    return typeof value === "string" ? value : "";
  }
  const count = found.length - (named === null ? 2 : 3);
  const value = group < count ? found[group] : undefined;
  return typeof value === "string" ? value : "";
}

/** Percent-encodes characters that are invalid in a path; keeps escapes and slashes. */
export const pathEscape = (value: string): string =>
  value
    .toWellFormed()
    .replace(/%(?![\dA-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@%/]/gu, encodeURIComponent);

/** Percent-encodes characters that are invalid in a header, such as line breaks in parameters. */
export const fieldEscape = (value: string): string =>
  value.toWellFormed().replace(/[^\x20-\x7e\x80-\xff]/gu, encodeURIComponent);

/** Values from clients must not become markup or end a string. */
export function bodyEscape(type: string): Escape {
  if (isJson(type)) return (value) => JSON.stringify(value).slice(1, -1);
  if (/^(?:text\/html|[^;]*xml)/i.test(type)) return (value) => Bun.escapeHTML(value);
  if (/^application\/x-www-form-urlencoded/i.test(type))
    return (value) => encodeURIComponent(value.toWellFormed());
  return null;
}

export const isJson = (type: string): boolean => /^[^;/]+\/(?:[^;]+\+)?json\s*(?:;|$)/i.test(type);
