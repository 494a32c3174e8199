// Normalizes request headers that Vary names, as far as their meaning stays the same (RFC 9111 section 4.1); knows no response.
import { RecentMap } from "../../pdk/recent-map.ts";

/** Normalized values to remember, and the longest of them: clients choose them, and `max_total` does not count them. */
const RECENT_VALUES = 500;
const LONGEST_RECENT = 256;

export type Comparer = (name: string, value: string | null) => string | null;

/** `comparableValue`, which remembers what clients send: a lookup needs it for each variant of a key. */
export function comparer(): Comparer {
  const recent = new RecentMap<string, string | null>(RECENT_VALUES);
  return (name, value) => {
    if (value === null || value.length > LONGEST_RECENT) return comparableValue(name, value);
    const key = `${name}:${value}`;
    const known = recent.get(key);
    if (known !== undefined) return known;
    const comparable = comparableValue(name, value);
    recent.set(key, comparable);
    return comparable;
  };
}

/** Lists of preferences, whose weights decide and not their order. */
const PREFERENCES = new Set(["accept", "accept-language"]);

/** Not lists: a space more may be another value. */
const EXACT = new Set(["authorization", "cookie", "user-agent"]);

/** Two values are comparable as equal only if targets respond alike to both. */
export function comparableValue(name: string, value: string | null): string | null {
  if (value === null) return null;
  if (name === "accept-encoding") return codingsOf(value);
  // Spaces within quotes count.
  if (EXACT.has(name) || value.includes('"')) return value.trim();
  if (PREFERENCES.has(name)) return preferencesOf(value);
  return value.includes(",") ? partsOf(value).join(",") : value.trim();
}

const partsOf = (value: string) => value.split(",").map((part) => part.trim());

/** Without the weight of accepted codings, and without refused ones that no other member accepts (RFC 9110 section 12.5.3). */
function codingsOf(value: string): string {
  const accepted = new Set<string>();
  const refused = new Set<string>();
  for (const part of partsOf(value.toLowerCase())) {
    const [coding = "", weight = ""] = part.split(";").map((piece) => piece.trim());
    if (coding !== "") (/^q\s*=\s*0(?:\.0*)?$/.test(weight) ? refused : accepted).add(coding);
  }
  // An unencoded body is acceptable unless refused.
  for (const coding of refused)
    if (accepted.has("*") || coding === "identity" || coding === "*") accepted.add(`${coding};q=0`);
  return [...accepted].sort().join(",");
}

/** Types and languages in lower case, their parameters as sent, weights as numbers. */
function preferencesOf(value: string): string {
  const parts: string[] = [];
  for (const part of partsOf(value)) {
    if (part === "") continue;
    const [range = "", ...parameters] = part.split(";").map((piece) => piece.trim());
    let text = range.toLowerCase();
    for (const parameter of parameters) {
      const weight = /^q\s*=\s*([\d.]+)$/i.exec(parameter)?.[1];
      if (weight === undefined) text += `;${parameter}`;
      else if (Number(weight) !== 1) text += `;q=${Number(weight)}`;
    }
    parts.push(text);
  }
  return parts.sort().join(",");
}
