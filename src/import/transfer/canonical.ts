// A canonical order of members for every object, so that equal configurations export as equal files. Knows no resource.
import { isDocument } from "../../control/body.ts";

/** They identify an object, so they come first. */
const FIRST = ["id", "name", "username", "email", "label", "type"];
/** They change with every other member, so they come last. */
const LAST = ["created_at", "updated_at"];

/**
 * A copy with its members in order, at every depth. Alphabetical, and not as in the model, so that a field that moves in the
 * code does not move in the repositories of users.
 */
export function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isDocument(value)) return value;
  const names = Object.keys(value).sort(compareNames);
  return Object.fromEntries(names.map((name) => [name, canonical(value[name])]));
}

function compareNames(a: string, b: string): number {
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

function rank(name: string): number {
  const first = FIRST.indexOf(name);
  return first !== -1 ? first - FIRST.length : LAST.indexOf(name) + 1;
}
