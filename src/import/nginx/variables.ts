// Converts texts with variables of nginx to templates of the gateway; knows no directive but `set`.
import type { Level } from "./tree.ts";

type Part =
  | { readonly kind: "text"; readonly text: string }
  /** A number is a group of the last expression. */
  | { readonly kind: "variable"; readonly name: string };

const VARIABLE = /\$(?:\{(\w+)\}|(\w+))/g;

function partsOf(text: string): readonly Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const match of text.matchAll(VARIABLE)) {
    // `$1x` is the group 1 and an `x`.
    const [whole, braced, plain = ""] = match;
    const [digit] = braced === undefined ? (/^\d/.exec(plain) ?? []) : [];
    const name = digit ?? braced ?? plain;
    if (match.index > end) parts.push({ kind: "text", text: text.slice(end, match.index) });
    parts.push({ kind: "variable", name });
    end = match.index + (digit === undefined ? whole.length : 2);
    if (digit !== undefined && plain.length > 1) {
      parts.push({ kind: "text", text: plain.slice(1) });
      end = match.index + whole.length;
    }
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
  return parts;
}

export const hasVariables = (text: string): boolean =>
  partsOf(text).some(({ kind }) => kind === "variable");

/** Names of the variables in a text. */
export const variablesIn = (text: string): readonly string[] =>
  partsOf(text).flatMap((part) => (part.kind === "variable" ? [part.name] : []));

const TEMPLATES: Readonly<Record<string, string>> = {
  host: "request.host",
  http_host: "request.host",
  request_uri: "request.target",
  uri: "request.path",
  document_uri: "request.path",
  args: "request.query",
  query_string: "request.query",
  scheme: "request.scheme",
  request_method: "request.method",
  request_id: "request.id",
  remote_addr: "client.address",
  realip_remote_addr: "client.address",
};

/** The text without variables that `set` gives a fixed value. */
export function withFixed(text: string, level: Level): string {
  let made = text;
  // A value may have further variables.
  for (let round = 0; round < 4 && hasVariables(made); round++)
    made = partsOf(made)
      .map((part) => {
        if (part.kind === "text") return part.text;
        return fixedValue(part.name, level) ?? `\${${part.name}}`;
      })
      .join("");
  return made;
}

function fixedValue(name: string, level: Level): string | null {
  const all = level.chain.flatMap((each) =>
    each.own("set").filter(({ args }) => args[0] === `$${name}`),
  );
  const inner = all[0]?.args[1];
  // Conditions may set it as well.
  const isConditional = level.chain.some((each) =>
    each
      .own("if")
      .some(({ block }) => block?.some((one) => one.name === "set" && one.args[0] === `$${name}`)),
  );
  const values = new Set(all.map(({ args }) => args[1]));
  return inner === undefined || isConditional || values.size !== 1 ? null : inner;
}

export interface TemplateOptions {
  /** The name for `$server_name`. */
  readonly serverName: string | null;
  /** Whether `$1` is a group of an expression. */
  readonly hasGroups?: boolean;
}

export interface Templated {
  readonly text: string;
  /** Variables without an equivalent. */
  readonly unknown: readonly string[];
}

/** `level`: where the text stands; for `set`. */
export function templateOf(
  source: string,
  level: Level,
  { serverName, hasGroups = false }: TemplateOptions,
): Templated {
  const unknown: string[] = [];
  const text = partsOf(withFixed(source, level))
    .map((part) => {
      if (part.kind === "text") return part.text;
      const { name } = part;
      if (name === "server_name" && serverName !== null) return serverName;
      const found = variableOf(name);
      if (found !== null) return `\${${found}}`;
      if (hasGroups && /^[1-9]$/.test(name)) return `$${name}`;
      unknown.push(name);
      return "";
    })
    .join("");
  return {
    text: text.replaceAll("${request.path}?${request.query}", "${request.target}"),
    unknown,
  };
}

function variableOf(name: string): string | null {
  if (Object.hasOwn(TEMPLATES, name)) return TEMPLATES[name] ?? null;
  const [, kind, rest = ""] = /^(http|cookie|arg)_(\w+)$/.exec(name) ?? [];
  if (kind === "http") return `request.header.${rest.replaceAll("_", "-")}`;
  if (kind === "cookie") return `request.cookie.${rest}`;
  return kind === "arg" ? `request.query.${rest}` : null;
}

/** `$uri$is_args$args` is the whole target. */
export const withWholeTarget = (text: string): string =>
  text.replaceAll(
    /\$\{?(?:document_)?uri\}?\$\{?is_args\}?\$\{?(?:args|query_string)\}?/g,
    "$request_uri",
  );

/** `1m`, `10k`, `2G`, in bytes; null: no size. */
export function bytesOf(text: string | null): number | null {
  const [, number, unit = ""] = /^(\d+)([kKmMgG]?)$/.exec(text ?? "") ?? [];
  if (number === undefined) return null;
  const factor = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[unit.toLowerCase()] ?? 1;
  return Number(number) * factor;
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  M: 2_592_000_000,
  y: 31_536_000_000,
};

/** `60`, `60s`, `1h30m`, in milliseconds; null: no time. */
export function millisecondsOf(text: string | null): number | null {
  if (text === null || !/^(?:\d+(?:ms|[smhdwMy])?\s*)+$/.test(text)) return null;
  let sum = 0;
  for (const [, number, unit = "s"] of text.matchAll(/(\d+)(ms|[smhdwMy])?/g))
    sum += Number(number) * (UNITS[unit] ?? 1000);
  return sum;
}
