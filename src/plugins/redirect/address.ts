// Builds redirect URLs from templates and client data, which must not decide the host; knows no response.
import type { RequestContext } from "../../pdk/context.ts";
import { replacePrefix } from "../../pdk/http.ts";
import { compileTemplate } from "../../pdk/template.ts";

/** Null: the request does not match; "invalid": client data is not valid in the host. */
export type Address = (context: RequestContext) => string | "invalid" | null;

interface Parts {
  readonly to: string;
  readonly regex: string | null;
  /** Segments that `to` replaces. */
  readonly prefix: string | null;
  readonly keep_path: boolean;
  readonly keep_query: boolean;
}

/** A placeholder: `${request.path}`, `$1`, `$<name>`. */
const PLACEHOLDER = /\$\{[^{}]*\}|\$\d{1,2}|\$<[A-Za-z_]\w*>/g;

/** Variables that clients cannot choose freely: routing has matched the host, the operator sets the environment. */
const isSafeInHost = (placeholder: string) =>
  placeholder === "${request.host}" || placeholder.startsWith("${env.");

/** Scheme, host and path, each with placeholders; the path begins with a literal slash. */
const ABSOLUTE =
  /^(https?|\$\{request\.scheme\}):\/\/((?:(?!\$\{request\.(?:path|target)\})(?:\$\{[^{}]*\}|\$<\w+>|[^/?#]))*)(.*)$/s;

const HOST = /^(?:(?:[a-z0-9_-]+\.)*[a-z0-9-]+\.?|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Null for a safe template without open redirect; otherwise its problem. */
export function addressProblem(
  to: string,
  { hasCaptures }: { readonly hasCaptures: boolean },
): string | null {
  if (!hasCaptures && /\$(?:\d|<)/.test(to)) return "has $1 or $<name> without an expression";
  if (/[^\x21-\x7e]/.test(to)) return "must be ASCII without spaces; write others percent-encoded";
  if (/^\/(?![/\\])/.test(to)) return null;
  const [, , host = ""] = ABSOLUTE.exec(to) ?? [];
  if (host === "") return "must begin with https://, http:// or one /";
  if (/[@\\]/.test(host)) return "must not have @ or \\ in its host";
  const found = [...host.matchAll(PLACEHOLDER)].filter(([text]) => !isSafeInHost(text));
  const last = found.at(-1);
  if (last === undefined) return null;
  const tail = host.slice(last.index + last[0].length);
  return /^\.[a-z0-9-]/i.test(tail)
    ? null
    : "lets clients choose the host: a variable there must be followed by a literal such as .example.com";
}

/** Whether it has a variable of the path, so that the path is not appended. */
export const holdsPath = (to: string): boolean =>
  /\$\{(?:request\.(?:path|target)|path\.)/.test(to);

type Fill = (context: RequestContext, found: RegExpExecArray | null) => string;

/** Compiles a template for which `addressProblem` returns null. */
export function addressBuilder({
  to,
  regex,
  prefix: start,
  keep_path,
  keep_query,
}: Parts): Address {
  const expression = regex === null ? null : new RegExp(regex);
  const [, scheme = "", hostText = "", restText = ""] = ABSOLUTE.exec(to) ?? [];
  const isAbsolute = scheme !== "";
  const prefix = compileTemplate(`${scheme}://`);
  const host = fillerOf(hostText);
  const rest = fillerOf(isAbsolute ? restText : to);
  const keepsPath = keep_path && regex === null && !holdsPath(to);
  const keepsQuery = keep_query && !/\$\{request\.(?:query|target)/.test(to);
  return (context) => {
    const found = expression === null ? null : expression.exec(context.path);
    if (expression !== null && found === null) return null;
    let location = rest(context, found);
    if (start !== null) {
      const replaced = withPrefix(location, context.path, start);
      if (replaced === null) return null;
      location = replaced;
    } else if (keepsPath) location = withPath(location, context.path);
    if (keepsQuery) location = withQuery(location, context.query);
    // Browsers read `//evil.example` and `/\evil.example` as another host.
    if (!isAbsolute) return `/${encoded(location).replace(/^(?:[/\\]|%5C)+/i, "")}`;
    const name = host(context, found);
    if (!HOST.test(name)) return "invalid";
    // Values must not extend the host.
    const gap = location === "" || /^[/?#]/.test(location) ? "" : "/";
    return prefix(context) + name + gap + encoded(location);
  };
}

function fillerOf(text: string): Fill {
  const parts: Fill[] = [];
  let end = 0;
  for (const match of text.matchAll(/\$(?:(\d{1,2})|<([A-Za-z_]\w*)>)/g)) {
    const before = compileTemplate(text.slice(end, match.index));
    const [whole, number, name = ""] = match;
    parts.push((context) => before(context));
    parts.push((_, found) =>
      number === undefined ? (found?.groups?.[name] ?? "") : (found?.[Number(number)] ?? ""),
    );
    end = match.index + whole.length;
  }
  const last = compileTemplate(text.slice(end));
  parts.push((context) => last(context));
  return (context, found) => parts.map((part) => part(context, found)).join("");
}

/** Inserts it before a query or fragment, with one slash between. */
function withPath(location: string, path: string): string {
  const [, before = "", after = ""] = /^([^?#]*)(.*)$/s.exec(location) ?? [];
  return before.replace(/\/$/, "") + path + after;
}

/** The path with its prefix replaced by this location; null when it does not match. */
function withPrefix(location: string, path: string, prefix: string): string | null {
  const [, before = "", after = ""] = /^([^?#]*)(.*)$/s.exec(location) ?? [];
  const replaced = replacePrefix(path, prefix, before);
  return replaced === null ? null : replaced + after;
}

function withQuery(location: string, query: string): string {
  if (query === "") return location;
  const [, before = "", fragment = ""] = /^([^#]*)(.*)$/s.exec(location) ?? [];
  return `${before}${before.includes("?") ? "&" : "?"}${query}${fragment}`;
}

/** Characters that are not allowed in a URL: they would end the header or be ambiguous. */
const encoded = (text: string) =>
  text
    .toWellFormed()
    .replace(/[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]/gu, encodeURIComponent);
