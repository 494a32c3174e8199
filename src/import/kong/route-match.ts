// Conditions of a Kong route in three forms: plain, matching at least the same requests, and matching at most those.
import type { ValueMatch } from "../../model/route.ts";
import { caseless, escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import { isRegexPath } from "./route-paths.ts";
import { storedNameOf } from "../../model/host-name.ts";

export interface Hosts {
  readonly hosts: readonly string[];
  /** An exact expression for the header Host; null: none. */
  readonly field: string | null;
  /** Whether `hosts` cannot express it. */
  readonly needsField: boolean;
  /** All names, with wildcards at any position. */
  readonly names: readonly string[];
  /** Whether the route has hosts that cannot be imported. */
  readonly isLost: boolean;
}

/** Kong compares the host literally: a trailing dot makes it another host. */
const PORT = "(?::\\d*)?$";

export function hostsOf(members: Members): Hosts {
  const given = members.texts("hosts");
  const names = members.texts("snis");
  if (names.length > 0)
    members.changed("snis", given.length > 0 ? "the hosts decide" : "became hosts");
  return hostsFrom(given.length > 0 ? given : names, members);
}

/** `members`: of the route, to report what changes. */
export function hostsFrom(given: readonly string[], members: Members | null = null): Hosts {
  const wanted = given.map(storedNameOf);
  const source = `^(?:${wanted.map(hostSource).join("|")})`;
  const field = wanted.length > 0 && source.length <= MAX_LENGTH ? source : null;
  const found = new Set<string>();
  let needsField = false;
  for (const host of wanted) {
    const bare = host.replace(/:(\d+)$/, "").replace(/\.$/, "");
    if (bare.includes("*") && !/^\*\.[^*]+$/.test(bare)) {
      members?.changed("hosts", `${host} became a condition on the header Host`);
      needsField = true;
    } else if (bare !== host)
      members?.changed("hosts", `${host} became ${bare}, which matches every port`);
    found.add(bare);
  }
  return {
    field,
    needsField,
    isLost: needsField && field === null,
    names: [...found],
    hosts: needsField ? [] : [...found],
  };
}

/** Hosts for the comparison with other routes: for `a.*` those of `all` names in the file that begin with `a.`. */
export function hostsAmong({ names, hosts, needsField }: Hosts, all: readonly string[]): string[] {
  if (!needsField) return [...hosts];
  const isOdd = (name: string) => name.includes("*") && !/^(?:\*\.[^*]+|[^*]+\.\*)$/.test(name);
  if (names.some(isOdd)) return [];
  return names.flatMap((name) => {
    if (!name.endsWith("*")) return [name];
    const start = name.slice(0, -1).toLowerCase();
    const alike = all
      .map((other) => other.toLowerCase())
      .map((other) => (other.startsWith("*.") ? start + other.slice(2) : other));
    return [`${start}invalid`, ...new Set(alike.filter((other) => other.startsWith(start)))];
  });
}

/** Longest expression of a route. */
const MAX_LENGTH = 1000;

/** With the port, where the host has one. */
function hostSource(host: string): string {
  const [, name = host, port] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  const source = name.split("*").map(caseless).join("[^:]+");
  return `${source}${port === undefined ? PORT : `:${port}$`}`;
}

export interface FieldTerms {
  /** The simple form, where small differences do not matter. */
  readonly plain: readonly ValueMatch[];
  /** Matches whenever Kong's condition does, and maybe more often. */
  readonly over: readonly ValueMatch[];
  /** Matches only when Kong's condition does; null: it cannot be expressed. */
  readonly under: readonly ValueMatch[] | null;
}

const LINE_START = "(?:^|[,;] )";
const LINE_END = "(?:[,;] |$)";

/** By name, each with alternative values, case-insensitive. Kong checks each line of a header field. */
export function headersOf(members: Members): FieldTerms {
  const headers = members.object("headers");
  const all = (headers?.names ?? []).map((name) => {
    const values = headers?.texts(name) ?? [];
    const [first = ""] = values;
    const text = first.slice(2);
    return values.length === 1 && first.startsWith("~*")
      ? fieldTerm(name, { source: portable(text, true)?.source ?? null, text })
      : fieldTerm(name, { values, isCaseless: true });
  });
  return allOf(all);
}

/** All of the terms. */
export const allOf = (all: readonly FieldTerms[]): FieldTerms => ({
  plain: all.flatMap(({ plain }) => plain),
  over: all.flatMap(({ over }) => over),
  under: all.some(({ under }) => under === null) ? null : all.flatMap(({ under }) => under ?? []),
});

/** One of the values, or an expression; `source` null: it has no equivalent, and stands as it is in the simple form. */
type FieldValue =
  | { readonly values: readonly string[]; readonly isCaseless: boolean }
  | { readonly source: string | null; readonly text: string };

export function fieldTerm(name: string, value: FieldValue): FieldTerms {
  const term = (text: string): ValueMatch => ({ name, op: "regex", value: text });
  if ("values" in value) {
    const source = choiceOf(value.values, value.isCaseless);
    const whole = [term(`^${source}$`)];
    return { plain: whole, over: [term(`${LINE_START}${source}${LINE_END}`)], under: whole };
  }
  const { source, text } = value;
  if (source === null) return { plain: [term(text)], over: [], under: null };
  return {
    plain: [term(source)],
    over: [term(inLines(source))],
    under: [term(`^(?=[^,;]*$)(?=.*?(?:${source}))`)],
  };
}

/** A handshake of a WebSocket. */
export const webSocket: FieldTerms = fieldTerm("Upgrade", {
  values: ["websocket"],
  isCaseless: true,
});

function choiceOf(values: readonly string[], isCaseless: boolean): string {
  const sources = values.map(isCaseless ? caseless : escaped);
  return sources.length === 1 ? (sources[0] ?? "") : `(?:${sources.join("|")})`;
}

const inLines = (source: string): string =>
  source.replaceAll(/\\.|\[\^?\]?[^\]]*\]|[$^]/g, (token) =>
    token === "^" ? LINE_START : token === "$" ? LINE_END : token,
  );

/** One path of a route in the same three forms. */
export interface KongPath {
  readonly text: string;
  readonly isRegex: boolean;
  /** Expressions on normalized paths. */
  readonly over: string;
  /** Expressions on unambiguous paths. */
  readonly under: string | null;
}

export function pathOf(text: string, format: string): KongPath {
  const isRegex = isRegexPath(text, format);
  if (isRegex) return expressionOf(text);
  // Routes match `%2F` and the like decoded, and other escapes as they are.
  const compared = text
    .replaceAll(/[^\0-\x7f]+/g, (characters) => encodeURI(characters.toWellFormed()))
    .replaceAll(/%([0-9a-fA-F]{2})/g, (triplet, code: string) => {
      const character = String.fromCharCode(Number.parseInt(code, 16));
      return /^[ -$&-~]$/.test(character) ? character : triplet.toUpperCase();
    });
  const over = `^${escaped(compared.replaceAll(/[/\\]+/g, "/").replace(/;.*$/s, ""))}`;
  return { text, isRegex, over, under: /^[\w\-.~/]*$/.test(text) ? over : null };
}

/** Kong anchors expressions at the start of the path. */
function expressionOf(text: string): KongPath {
  const source = text.replace(/^~/, "").replace(/^\^/, "");
  const known = portable(source);
  const anchored = (inner: string) => (inner.includes("|") ? `^(?:${inner})` : `^${inner}`);
  if (known?.ignoresEscapes) {
    const over = anchored(known.source);
    return { text, isRegex: true, over, under: over };
  }
  // Every path with the same literal prefix: some of them may match.
  const [start = ""] = source.includes("|") ? [] : (/^[\w\-~/]*(?![*+?{])/.exec(source) ?? []);
  return { text, isRegex: true, over: `^${escaped(start)}`, under: null };
}
