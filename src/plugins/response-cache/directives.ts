// Reading Cache-Control (RFC 9111 section 5.2); knows nothing of what its directives do.

/** Lower-case names; the value "" for those without one. */
export type Directives = ReadonlyMap<string, string>;

const DIRECTIVE = /([!#$%&'*+\-.^_`|~\w]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g;

/** Of several equal ones that hold seconds the smallest counts: what is said twice is safest when it is kept short. */
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

/** RFC 9111 section 1.2.2: what does not fit into 31 bits is as long as that; null for what is no number. */
function secondsOf(text: string | undefined): number | null {
  if (text === undefined || !/^\d+$/.test(text)) return null;
  return Math.min(Number(text), 2_147_483_648);
}

/** Seconds of a directive: null when it is not there, 0 when it is malformed, which stands for the past. */
export function seconds(directives: Directives, name: string): number | null {
  return directives.has(name) ? (secondsOf(directives.get(name)) ?? 0) : null;
}

/**
 * As text, in lower case and without doubles. Of a value that needs quotes only the name stays: readers that look for
 * commas alone would take what stands in the quotes for directives.
 */
export const writeDirectives = (directives: Directives): string =>
  [...directives]
    .map(([name, value]) => (/^[\w.-]+$/.test(value) ? `${name}=${value}` : name))
    .join(", ");
