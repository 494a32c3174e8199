// Converts return, and rewrites to another URL, to responses and redirects; knows no location.
import type { Document } from "../../control/body.ts";
import type { Content, ContentOptions } from "./content.ts";
import { wholePathExpression } from "./paths.ts";
import type { Directive, Level } from "./tree.ts";
import { templateOf, withFixed, withWholeTarget } from "./variables.ts";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export function responseOf(directive: Directive, level: Level, options: ContentOptions): Content {
  const [first = "", second] = directive.args;
  const isCode = /^\d{3}$/.test(first);
  const code = isCode ? Number(first) : 302;
  const text = isCode ? second : first;
  if (REDIRECTS.has(code)) return redirectTo({ to: text ?? "", status: code }, level, options);
  // nginx closes the connection.
  if (code === 444) return { kind: "response", name: "respond", config: { status: 403 } };
  const status = code < 200 ? 500 : code;
  if (text === undefined || text === "")
    return {
      kind: "response",
      name: "respond",
      config: { status, ...(status < 400 ? { body: "" } : {}) },
    };
  const body = templateOf(text, level, options);
  const type = level.value("default_type") ?? "text/plain";
  const headers: Document = /^[\w.+-]+\/[\w.+-]+$/.test(type) ? { "Content-Type": type } : {};
  const isLiteral = withFixed(text, level) === body.text && !body.text.includes("${");
  const content = isLiteral ? { body: body.text } : { template: body.text };
  return { kind: "response", name: "respond", config: { status, headers, ...content } };
}

const unsupported = (to: string): Content => ({
  kind: "closed",
  status: 503,
  isDenial: true,
  why: `the redirect to ${to} has no equivalent`,
});

function redirectTo(
  { to, status }: { readonly to: string; readonly status: number },
  level: Level,
  options: ContentOptions,
): Content {
  const source = withWholeTarget(to).replace(
    /\$\{?uri\}?\?\$\{?(?:args|query_string)\}?/g,
    "$request_uri",
  );
  const { text, unknown } = templateOf(source, level, options);
  if (text === "${request.target}" || unknown.length > 0 || text === "") return unsupported(to);
  const place = text.startsWith("${request.target}") ? null : text;
  if (place === null) return unsupported(to);
  // The host of the client is the whole URL but for its scheme.
  const [, scheme] = /^(https?):\/\/\$\{request\.host\}\$\{request\.target\}$/.exec(place) ?? [];
  if (scheme !== undefined) return redirect({ scheme, status });
  return redirect({ to: place, status, keep_path: false, keep_query: false });
}

const redirect = (config: Document): Content => ({ kind: "response", name: "redirect", config });

/** A rewrite that redirects; null: it does not, or has no equivalent. */
export function redirectOf(
  { args }: Directive,
  level: Level,
  options: ContentOptions,
): Content | null {
  const [source = "", given = "", flag] = args;
  // A group of the whole path is the path.
  const replacement = /^\^?\(\.\*\)\$?$/.test(source) ? given.replace(/\$\{?1\}?/, "$uri") : given;
  const isAbsolute = /^(?:https?:\/\/|\$\{?scheme\}?:)/.test(replacement);
  if (!isAbsolute && flag !== "redirect" && flag !== "permanent") return null;
  const status = flag === "permanent" ? 301 : 302;
  const regex = wholePathExpression(source);
  const dropsQuery = replacement.endsWith("?");
  const to = templateOf(dropsQuery ? replacement.slice(0, -1) : replacement, level, {
    ...options,
    hasGroups: true,
  });
  if (regex === null || to.unknown.length > 0 || to.text === "") return null;
  const hasGroups = /\$\d/.test(to.text);
  const keep = { keep_query: !dropsQuery && !to.text.includes("${request.target}") };
  const isLocal =
    /^\/(?!\/)/.test(to.text) || /^(?:https?|\$\{request\.scheme\}):\/\//.test(to.text);
  if (!isLocal) return null;
  return redirect(
    hasGroups
      ? { to: to.text, regex, status, ...keep }
      : { to: to.text, status, keep_path: false, ...keep },
  );
}
