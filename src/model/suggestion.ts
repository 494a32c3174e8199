// The nearest known name to one that is not known, for error messages; knows no list of names.

import { UUID_PATTERN } from "./fields.ts";

/** Comparing takes the product of the lengths for each word. */
const MAX_LENGTH = 64;
const MAX_WORDS = 1000;

/** `; did you mean "serve"?` when one of the words is close to what was typed, else nothing. */
export function suggestion(typed: string, words: readonly string[]): string {
  if (typed.length > MAX_LENGTH || words.length > MAX_WORDS) return "";
  let best = "";
  // Of a short word any other one is near.
  let bestDistance = Math.min(typed.length - 1, Math.max(2, Math.floor(typed.length / 3))) + 1;
  for (const word of words) {
    const isStart = typed.length > 1 && word.startsWith(typed);
    const distance = isStart ? 0 : editDistance(typed, word);
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best === "" ? "" : suggested(best);
}

export const suggested = (name: string) => `; did you mean "${name}"?`;

/** The same among the names of objects; nothing for an id. */
export function suggestedName(
  typed: string,
  objects: ReadonlyMap<string, object>,
  nameOf: (object: object) => unknown,
): string {
  if (UUID_PATTERN.test(typed) || objects.size > MAX_WORDS) return "";
  const names = [...objects.values()].map(nameOf);
  return suggestion(
    typed,
    names.filter((name) => typeof name === "string"),
  );
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const above = (previous[j] ?? 0) + 1;
      const left = (row[j - 1] ?? 0) + 1;
      const diagonal = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(above, left, diagonal));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
