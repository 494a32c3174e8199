// Parses Cache-Control (RFC 9111 section 5.2) and its targeted fields (RFC 9213); knows nothing of the meaning of directives.
import { parseDictionary } from "structured-headers";

/** Lower-case names; the value "" for those without one. */
export type Directives = ReadonlyMap<string, string>;

/** No space around the equals sign: `max-age = 60` is a directive without a value, and so stale. */
const DIRECTIVE = /([!#$%&'*+\-.^_`|~\w]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g;

/** Of repeated directives the first counts (RFC 9111 section 4.2.1). */
export function parseDirectives(value: string | null): Directives {
  const directives = new Map<string, string>();
  if (value === null) return directives;
  for (const [, name = "", quoted, plain] of value.matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    if (!directives.has(key)) directives.set(key, quoted ?? plain ?? "");
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

/** Directives whose value is a number of seconds. */
const WITH_SECONDS = new Set(["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]);

/**
 * Directives of a targeted field, a structured dictionary; null: empty, or invalid in any part, and so ignored (RFC 9213
 * section 2.1).
 */
export function parseTargeted(value: string): Directives | null {
  const directives = new Map<string, string>();
  try {
    for (const [name, [item]] of parseDictionary(value)) {
      if (WITH_SECONDS.has(name) && !Number.isInteger(item)) return null;
      if (item !== false) directives.set(name, typeof item === "number" ? String(item) : "");
    }
  } catch {
    return null;
  }
  return directives.size === 0 ? null : directives;
}
