// One order of members for every object, whoever wrote it: a document that means the same reads the same. Knows no resource.
import { isDocument } from "../body.ts";

/** Tell people what they look at, so they come first, whatever the alphabet says. */
const FIRST = ["id", "name", "username", "email", "label", "type"];
/** Change with everything else, so they come last. */
const LAST = ["created_at", "updated_at"];

/**
 * A copy with its members in order, at every depth. By alphabet, and not as the model has them, so that a field that moves
 * in the program does not move in everybody's repositories.
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
