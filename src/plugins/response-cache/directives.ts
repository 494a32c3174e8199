// Parses Cache-Control (RFC 9111 section 5.2); knows nothing of the meaning of directives.

/** Lower-case names; the value "" for those without one. */
export type Directives = ReadonlyMap<string, string>;

const DIRECTIVE = /([!#$%&'*+\-.^_`|~\w]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g;

/** Of repeated directives with seconds the smallest counts, as the safest. */
export function parseDirectives(value: string | null): Directives {
  const directives = new Map<string, string>();
  if (value === null) return directives;
  for (const [, name = "", quoted, plain] of value.matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    const text = quoted ?? plain ?? "";
    const before = directives.get(key);
    if (before === undefined || (secondsOf(text) ?? 0) < (secondsOf(before) ?? 0))
      directives.set(key, text);
  }
  return directives;
}

/** RFC 9111 section 1.2.2: saturates at 31 bits; null: not a number. */
function secondsOf(text: string | undefined): number | null {
  if (text === undefined || !/^\d+$/.test(text)) return null;
  return Math.min(Number(text), 2_147_483_648);
}

/** Seconds of a directive: null when absent, 0 (stale) when malformed. */
export function seconds(directives: Directives, name: string): number | null {
  return directives.has(name) ? (secondsOf(directives.get(name)) ?? 0) : null;
}

/**
 * As text, in lower case and without duplicates. A directive with a quoted value keeps only its name: parsers that split at
 * commas would read the quoted text as directives.
 */
export const writeDirectives = (directives: Directives): string =>
  [...directives]
    .map(([name, value]) => (/^[\w.-]+$/.test(value) ? `${name}=${value}` : name))
    .join(", ");
